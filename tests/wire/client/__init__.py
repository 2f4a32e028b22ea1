"""Tests of `sparkmirror.wire.client`."""
