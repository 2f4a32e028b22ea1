"""Talking to Kafka: data over our own connections, admin requests through kafka-python.

May import: mirror, config, batches; kafka-python is imported only here.
Start reading: produce.producer, fetch.fetcher, security.
"""
