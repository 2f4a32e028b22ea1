"""Each part reads one thing of the worker (lag, tasks, group, JVM, ...) and fills in its metrics.

May import: the table, connect, and what is below. Never waits for a cluster.
Start reading: flow_samples, worker_samples.
"""
