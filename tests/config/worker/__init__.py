"""Tests of `sparkmirror.config.worker`."""
