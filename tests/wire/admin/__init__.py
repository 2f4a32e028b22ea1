"""Tests of `sparkmirror.wire.admin`."""
