"""The group of workers: who leads, for how long for sure, and how they sign requests.

May import: wire, spark.link.lease, config.
Start reading: worker_group_member; connect_protocol has what members write to each other.
"""
