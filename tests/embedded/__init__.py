"""Tests of sparkmirror.embedded."""
