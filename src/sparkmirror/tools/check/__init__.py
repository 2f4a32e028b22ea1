"""`sparkmirror check`: are clusters reachable, and do they grant what the file needs?

May import: connect, wire, mirror, config.
Start reading: cluster_check.
"""
