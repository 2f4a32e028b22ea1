"""Tests of the configuration layer."""
