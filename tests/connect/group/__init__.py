"""Tests of `sparkmirror.connect.group`."""
