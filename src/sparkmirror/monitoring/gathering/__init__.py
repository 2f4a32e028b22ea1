"""Collects what the workers of a group know: each answers for all, because it asks the others.

May import: monitoring.lag, monitoring.event_log, monitored, connect, and what is below.
Start reading: worker_figures, then gathering.
"""
