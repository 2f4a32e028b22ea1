"""MirrorMaker 2's rules as pure functions and value types: no I/O, no clock.

How remote topics are named (`policy`), which topics, settings, groups and access rules are
copied (`filters`, `topics`, `config_sync`, `acls`), which task copies which partition
(`assignment`), and the bytes of MirrorMaker 2's own records (`records`, `partitioner`).

Offsets of consumer groups: when syncs are written (`offset_sync_writer`), how they translate
(`offset_sync_store`), which checkpoints result (`checkpoints`), and what groups get on the
target (`group_offsets`). Beyond MirrorMaker 2: the exact map of all offsets (`offset_map`).

All other packages use these rules; nothing here depends on them, except on `batches` and `config`.
"""
