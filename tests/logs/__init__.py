"""How log lines look, which are left out, and what they mean."""
