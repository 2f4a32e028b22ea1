"""Tests of sparkmirror.cli."""
