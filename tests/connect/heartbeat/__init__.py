"""Tests of `sparkmirror.connect.heartbeat`."""
