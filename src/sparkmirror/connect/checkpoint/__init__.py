"""MirrorCheckpointConnector: which groups, and their translated offsets on the target.

May import: connect.start_checks, connect.storage, wire, mirror; never connect.runtime.
Start reading: mirror_checkpoint_connector.
"""
