"""What the page, REST and the CLI show: rows and sentences made of figures, events and statuses.

May import: monitoring.gathering, monitoring.clusters, connect, and what is below; not rest.
Start reading: rows, then views and picture.
"""
