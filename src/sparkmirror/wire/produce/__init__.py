"""Writing: order, retries, sequence numbers, transactions (KafkaProducer, Sender).

May import: wire.fetch, wire.client and below.
Start reading: producer, record_accumulator.
"""
