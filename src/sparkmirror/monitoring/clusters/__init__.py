"""Looks at the clusters of each flow while somebody watches: brokers, topics, groups, heartbeats.

May import: monitored, connect, and what is below. Changes nothing on any cluster.
Start reading: known, then flow_watch.
"""
