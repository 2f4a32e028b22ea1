"""Tests of `sparkmirror.config.security`."""
