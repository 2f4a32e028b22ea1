"""Tests of `sparkmirror.mirror.positions`."""
