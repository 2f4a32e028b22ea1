"""The work of commands, without a terminal.

May import: rest, connect and below.
Start reading: check.cluster_check, deploy.deployment.
"""
