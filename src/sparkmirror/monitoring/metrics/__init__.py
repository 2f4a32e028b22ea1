"""What /metrics shows, for Prometheus and OpenTelemetry: one table of metrics, and what fills it.

May import: lag, connect, and what is below. Reads at the time of a scrape; changes nothing.
Start reading: metric_table, metrics_collector.
"""
