"""Tests of `sparkmirror.wire.produce`."""
