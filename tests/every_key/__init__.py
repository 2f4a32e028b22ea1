"""Proof that every key of the tables reaches the code that acts on it, or is explained."""
