"""Bodies of requests and responses, and what Jackson says of those it cannot read.

May import: connect.entities, errors.
Start reading: request_bodies, response_bodies.
"""
