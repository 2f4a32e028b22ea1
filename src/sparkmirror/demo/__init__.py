"""Two real clusters, a mirror between them, and an independent comparison of what arrived.

All records here are written and read with confluent-kafka, which shares no code with the mirror.
The parity and Spark-cluster tests use the seeding and the comparison too.
"""
