"""Tests of `sparkmirror.connect.checkpoint`."""
