"""Tests of `sparkmirror.batches.merging`."""
