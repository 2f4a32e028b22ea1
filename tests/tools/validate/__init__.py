"""Tests of `sparkmirror validate`."""
