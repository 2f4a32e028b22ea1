"""Tokens for OAUTHBEARER: where they come from and what they claim.

May import: wire.sasl.mechanism, wire.sasl.renewing, errors.
Start reading: oauthbearer, tokens.
"""
