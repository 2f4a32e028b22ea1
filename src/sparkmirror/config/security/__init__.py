"""What the TLS and SASL settings of one client must say together.

May import: config.keys, config.files.
Start reading: sasl, tls_checks.
"""
