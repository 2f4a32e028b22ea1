"""Tests of `sparkmirror.spark.link`."""
