"""What is stored about copied records: positions, offset syncs, the exact offset map.

May import: wire, mirror, spark.task_config, spark.link.
Start reading: positions, offset_committer.
"""
