"""The control plane, under Kafka Connect's names: connectors, their tasks, their state.

May import: spark, wire, mirror, config.
Start reading: runtime.herder_loop, source.mirror_source_connector.
"""
