"""Tests of `sparkmirror.connect.source`."""
