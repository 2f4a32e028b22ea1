"""Talking to Kafka: the data connection (fetch, produce) and, through kafka-python, admin requests."""
