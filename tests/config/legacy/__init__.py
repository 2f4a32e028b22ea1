"""Tests of `sparkmirror.config.legacy`."""
