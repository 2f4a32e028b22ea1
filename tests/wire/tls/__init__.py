"""Tests of `sparkmirror.wire.tls`."""
