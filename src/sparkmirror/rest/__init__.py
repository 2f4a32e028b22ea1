"""Kafka Connect's REST API over HTTP. Runs on: worker."""
