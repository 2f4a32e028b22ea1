"""Who may use the REST API: users, passwords, TLS.

May import: rest.transport, config.
Start reading: users, tls.
"""
