"""The REST API of Kafka Connect 4.3: requests to a Herder, answers as a genuine worker gives them.

routes.py is the table of all endpoints; app.py makes an ASGI application of it, server.py serves
it. What Jetty, Jersey and Jackson say of bad requests is in errors.py, uris.py and jackson.py.
"""
