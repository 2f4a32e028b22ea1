"""Tests of `sparkmirror.tools.check`."""
