"""Strimzi resources become files that this program takes, and no field is lost silently."""
