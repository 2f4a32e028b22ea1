"""Below the routes: paths, headers, limits, connections.

May import: config, errors.
Start reading: headers, uris.
"""
