"""Tests of `sparkmirror.config.validation`."""
