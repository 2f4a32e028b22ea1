"""Talking to Kafka: the data connection (fetch, produce) and, by kafka-python, admin requests."""
