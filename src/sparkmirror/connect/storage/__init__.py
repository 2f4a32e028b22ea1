"""Internal topics: config, status and offsets as in Connect, and those of MirrorMaker 2.

May import: connect.entities, wire, mirror, config.
Start reading: backing_stores, kafka_based_log.
"""
