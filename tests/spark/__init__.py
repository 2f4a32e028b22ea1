"""Tests of sparkmirror.spark."""
