"""The rows of the table of metrics, by who named them: Kafka and Strimzi, the JVM, or we.

May import: nothing of sparkmirror. The documentation and the checks of samples derive from them.
Start reading: metric_row, kafka_rows.
"""
