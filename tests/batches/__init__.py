"""Tests of sparkmirror.batches."""
