"""Tests of `sparkmirror.wire.protocol`."""
