"""Tests of the demo: its comparison must be able to fail."""
