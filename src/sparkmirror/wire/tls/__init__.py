"""TLS to brokers: whom to trust, Java's key stores, cipher suites, why a handshake failed.

May import: wire.net, config, errors.
Start reading: tls_context.
"""
