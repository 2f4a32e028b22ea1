"""Tests of `sparkmirror.embedded.long_lines`."""
