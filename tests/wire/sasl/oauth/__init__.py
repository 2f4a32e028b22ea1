"""Tests of `sparkmirror.wire.sasl.oauth`."""
