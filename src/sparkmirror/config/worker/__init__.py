"""A Connect worker's own settings: its file or environment variables, and its REST listeners.

May import: config.checks and below.
Start reading: worker_file.
"""
