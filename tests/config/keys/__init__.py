"""Tests of `sparkmirror.config.keys`."""
