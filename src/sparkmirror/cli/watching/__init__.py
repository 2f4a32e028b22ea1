"""What watches a running mirror, inside of a worker and as commands: flows, topics, top, failover.

May import: cli.tables, cli.deploy's options, rest, monitoring, tools, and what is below.
Start reading: view_client, then lists; monitoring is the worker's side.
"""
