"""Tests of `sparkmirror.tools.groups`."""
