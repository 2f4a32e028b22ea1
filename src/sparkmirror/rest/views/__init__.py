"""The page's files, the stream that keeps it up to date, and requests to the other workers.

May import: request_forwarder, signatures, monitoring, and what is below.
Start reading: static_files, event_stream.
"""
