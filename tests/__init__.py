"""Tests, in the same folders as the packages they test."""
