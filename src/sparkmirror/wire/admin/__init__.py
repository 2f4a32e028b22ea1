"""Topics, settings, ACLs, groups and our permissions on a cluster, through kafka-python.

May import: wire.fetch, wire.client and below.
Start reading: admin, group_admin.
"""
