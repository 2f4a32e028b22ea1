"""Tests of `sparkmirror.connect.runtime`."""
