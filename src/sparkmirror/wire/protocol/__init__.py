"""Requests and responses as bytes, the versions we speak, and what each error code means.

May import: errors, types.
Start reading: error_codes, messages.
"""
