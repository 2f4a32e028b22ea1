"""MirrorMaker 2's rules as pure functions and value types: no I/O, no clock.

What a remote topic is called (`policy`), which topics and settings are copied (`filters`,
`topics`), which task copies which partition (`assignment`), and the bytes of MirrorMaker 2's own
records (`records`, `partitioner`). Every other package asks here; nothing here asks back.
"""
