"""What genuine MirrorMaker 2 exports through Strimzi's rules, and we do not.

Runs on: worker. Pure. A name that is neither in the table of metrics nor here fails a test.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Metrics whose names match `pattern`, and why there are none."""

    pattern: str
    reason: str

    def covers(self, name: str) -> bool:
        """Whether it is about this one."""
        return re.fullmatch(self.pattern, name) is not None


LEFT_OUT = (
    LeftOut("jmx_.*", "they are about jmx_exporter itself"),
    LeftOut(
        "jvm_memory_pool_(allocated|collection)_.*|jvm_memory_objects_pending_finalization",
        "they need an agent inside the JVM, or add nothing to the pools' own figures",
    ),
    LeftOut(
        "jvm_threads_(deadlocked|deadlocked_monitor|state)",
        "the driver's JVM would have to be stopped for them at each scrape",
    ),
    LeftOut(
        "kafka_admin_client_.*",
        "admin requests are rare here, and connections for them short; errors are in the log and "
        "in the status of connectors",
    ),
    LeftOut(
        "kafka_connect_(connection|failed|incoming|io|network|node|outgoing|reauthentication|"
        "request|response|select|successful)_.*",
        "they are about the connection of a worker to its group's coordinator, which copies "
        "nothing; kafka_connect_coordinator_* shows whether it works",
    ),
    LeftOut(
        "kafka_connect_coordinator_(join_time|sync_time|rebalance_latency)_avg",
        "kafka_connect_worker_rebalance_rebalance_avg_time_ms is the time of both together",
    ),
    LeftOut(
        "kafka_connect_connector_task_(batch_size_avg|pause_ratio|running_ratio)",
        "tasks have no batches of Connect's kind; kafka_connect_connector_status has the state",
    ),
    LeftOut(
        "kafka_connect_source_task_poll_batch_.*",
        "tasks do not poll: they read ahead as long as the target keeps up",
    ),
    LeftOut(
        "kafka_connect_task_error_deadletterqueue_.*",
        "only sink connectors have a dead letter queue",
    ),
    LeftOut(
        "kafka_connect_task_error_(last_error_timestamp|total_errors_logged|total_record_errors|"
        "total_retries)",
        "a record that the target rejects is skipped, which is counted, or stops its partition, "
        "which sparkmirror_partition_stuck shows; retries are the client's, as in Kafka",
    ),
    LeftOut(
        "kafka_consumer_coordinator_.*",
        "tasks read partitions that they were assigned, without a consumer group",
    ),
    LeftOut(
        "kafka_(consumer|producer)_(commit_id|version|start_time_seconds)",
        "no Java client runs here; sparkmirror_build_info has the version",
    ),
    LeftOut(
        "kafka_(consumer|producer)_(commit_sync|committed|connection_close|connection_creation|"
        "failed|io|last_poll|metadata|network_io|node|poll_idle|reauthentication|request|requests|"
        "response|select|successful|time_between|waiting|txn|flush)_.*",
        "they describe the inside of Java's client, which works otherwise",
    ),
    LeftOut(
        "kafka_consumer_fetch_manager_(fetch_.*|preferred_read_replica|records_lag_avg|"
        "records_lead|records_lead_avg|records_per_request_avg)",
        "they describe single fetches of Java's client; records_lag is there",
    ),
    LeftOut(
        "kafka_producer_(batch|bufferpool|compression|produce|records)_.*|"
        "kafka_producer_record_(error|queue|retry|size)_.*|"
        "kafka_producer_buffer_(total|exhausted_total)|"
        "kafka_producer_topic_(compression_rate|record_error_total|record_retry_total)",
        "they describe how Java's producer fills batches; here batches pass as they are",
    ),
)
