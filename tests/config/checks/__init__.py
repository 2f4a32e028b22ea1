"""Tests of `sparkmirror.config.checks`."""
