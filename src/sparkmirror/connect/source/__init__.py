"""MirrorSourceConnector: which topics, their remote topics, settings, ACLs and tasks.

May import: connect.storage, spark, wire, mirror; never connect.runtime.
Start reading: mirror_source_connector.
"""
