"""Tests of `sparkmirror.spark.offsets`."""
