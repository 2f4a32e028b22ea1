"""MirrorMaker 1's work: one flow that keeps topic names, and its consumer group on the source.

May import: connect.runtime and below.
Start reading: legacy_mirror.
"""
