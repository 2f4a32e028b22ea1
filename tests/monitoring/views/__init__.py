"""The views on fakes: figures of several workers, and clusters in memory."""
