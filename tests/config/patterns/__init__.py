"""Tests of `sparkmirror.config.patterns`."""
