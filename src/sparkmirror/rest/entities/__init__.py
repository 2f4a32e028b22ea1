"""Bodies of requests and responses, and Jackson's errors for unreadable ones.

May import: connect.entities, errors.
Start reading: request_bodies, response_bodies.
"""
