"""The page's files, and the stream that keeps it up to date.

May import: transport, monitoring, and what is below.
Start reading: static_files, event_stream.
"""
