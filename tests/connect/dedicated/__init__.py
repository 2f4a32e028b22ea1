"""Dedicated mode without clusters."""
