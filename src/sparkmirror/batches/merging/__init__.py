"""Joins small batches: one-record batches in a backlog, batches that wait for a far target.

May import: batches.
Start reading: singles, merger.
"""
