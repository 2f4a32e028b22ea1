"""Tests of the parts of the benchmark that need no broker."""
