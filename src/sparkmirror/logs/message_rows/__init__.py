"""The rows of the table of messages, by subject.

May import: message_types.
Start reading: cluster_rows.
"""
