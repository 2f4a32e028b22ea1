"""Lag: its rules, and where its numbers come from."""
