"""Where a source record is on the target: MirrorMaker 2's offset syncs, and the exact map.

May import: mirror.records, errors, types.
Start reading: offset_sync_store, offset_map.
"""
