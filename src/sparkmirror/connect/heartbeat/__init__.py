"""MirrorHeartbeatConnector: one heartbeat per interval on the target.

May import: connect.storage, wire, mirror; never connect.runtime.
Start reading: mirror_heartbeat_connector.
"""
