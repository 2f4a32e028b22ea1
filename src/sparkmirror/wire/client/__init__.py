"""One cluster as a client sees it: connections, leaders, topic ids (NetworkClient, Metadata).

May import: wire.security, wire.net, wire.protocol.
Start reading: network_client, metadata.
"""
