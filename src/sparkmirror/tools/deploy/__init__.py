"""`sparkmirror deploy` and its companions: a client of a worker's REST API.

May import: rest, config.
Start reading: deployment.
"""
