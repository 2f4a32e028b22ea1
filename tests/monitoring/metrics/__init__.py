"""The table of metrics, what fills it, and how it is served."""
