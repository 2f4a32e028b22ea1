"""Tests of `sparkmirror.wire.net`."""
