"""Sockets, timers, frames and receive buffers of one thread; deadlines of requests.

May import: config.clients, wire.protocol.api_versions, errors.
Start reading: event_loop, connection.
"""
