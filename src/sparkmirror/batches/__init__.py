"""Kafka record batches as bytes: which pass untouched, and how the others are rewritten.

May import: errors.
Start reading: forward, header.
"""
