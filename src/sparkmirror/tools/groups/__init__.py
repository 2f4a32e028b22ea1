"""`sparkmirror groups`: group offsets from checkpoints, as a tool beside the mirror.

May import: connect, wire, mirror, config.
Start reading: offset_sync.
"""
