"""Fuzzing of everything that reads bytes which others wrote: see CONTRIBUTING.md, section 5."""
