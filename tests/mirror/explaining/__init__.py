"""Tests of explanations: they say what the mirror does."""
