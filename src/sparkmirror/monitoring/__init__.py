"""What users see of a running mirror: metrics, lag, events, the figures behind the page.

May import: connect, and what is below. Reads what the worker keeps anyway; changes nothing.
Start reading: monitored, metrics/metric_table.
"""
