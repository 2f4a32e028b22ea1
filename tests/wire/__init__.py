"""Tests of sparkmirror.wire."""
