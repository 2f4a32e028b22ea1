"""Dedicated mode: one herder for each source->target pair of an mm2 file, in one process.

May import: all other rooms of connect but legacy.
Start reading: mirror_maker, mirror_herder.
"""
