"""Tests of `sparkmirror.wire.fetch`."""
