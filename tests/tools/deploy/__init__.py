"""Tests of `sparkmirror.tools.deploy`."""
