"""Commands that show a running mirror: flows, topics, lag, events, top, failover.

May import: cli.tables, cli.deploy's options, tools, monitoring.views.wording.
Start reading: view_client, then lists.
"""
