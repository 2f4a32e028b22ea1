"""The group of workers: who leads, how long its lease lasts, and how workers sign requests.

May import: wire, spark.link.lease, config.
Start reading: worker_group_member; connect_protocol has the messages between members.
"""
