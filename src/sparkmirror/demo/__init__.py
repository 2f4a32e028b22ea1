"""Two real clusters, a mirror between them, and an independent comparison of what arrived.

Everything that touches records here goes through confluent-kafka, which shares no code with the
mirror. Seeding and comparison are also used by the parity and Spark-cluster tests.
"""
