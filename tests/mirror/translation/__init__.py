"""Tests of `sparkmirror.mirror.translation`."""
