"""Tests of sparkmirror.connect."""
