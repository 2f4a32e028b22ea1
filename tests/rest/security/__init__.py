"""Tests of `sparkmirror.rest.security`."""
