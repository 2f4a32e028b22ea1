"""Tests of what users see of a running mirror."""
