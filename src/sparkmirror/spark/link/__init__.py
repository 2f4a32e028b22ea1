"""The control link between a worker and its tasks, and the lease: until when a task may write.

May import: errors, config.masking.
Start reading: server, client, lease.
"""
