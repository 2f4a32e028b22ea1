"""Mirrors Kafka clusters as MirrorMaker 2 does, by forwarding whole record batches on Spark."""

__version__ = "0.1.0"
