"""Tests of `sparkmirror.rest.transport`."""
