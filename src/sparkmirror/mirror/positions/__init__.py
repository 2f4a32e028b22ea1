"""Where the copy of a partition begins, and which log and record hold its position.

May import: types.
Start reading: starts, provenance.
"""
