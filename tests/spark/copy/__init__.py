"""Tests of `sparkmirror.spark.copy`."""
