"""deploy/monitoring, docs/dashboards.md and the runbook: checked with promtool and Prometheus."""
