"""Kafka record batches as bytes: read, write, and prepare fetched ones for the target. No I/O."""
