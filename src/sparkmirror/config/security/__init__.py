"""Checks that the TLS and SASL settings of one client fit together.

May import: config.keys, config.files.
Start reading: sasl, tls_checks.
"""
