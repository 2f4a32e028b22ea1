"""Tests of `sparkmirror.config.files`."""
