"""What the page, REST and the CLI show: rows and sentences made of figures, events and statuses.

May import: monitoring.lag, monitoring.event_log, connect, and what is below; not rest.
Start reading: rows, then snapshot.
"""
