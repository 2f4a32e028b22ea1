"""Kafka Connect's REST API: requests to a Herder, and responses as a genuine worker gives them.

May import: connect, config.
Start reading: connect_api, routes.
"""
