"""Reading: fetch sessions, positions, leader epochs, reading ahead over long lines (Fetcher).

May import: wire.client and below.
Start reading: fetcher, fetch_session.
"""
