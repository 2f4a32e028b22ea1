"""Metrics that genuine Connect and MirrorMaker 2 have, as Strimzi's rules for JMX name them.

Runs on: worker. Pure. Names and labels are those of `packaging/examples/metrics` of Strimzi with
Kafka 4.3; `tests/monitoring/metrics/facts` has the facts. Where a value means something else
here, its help says so.
"""

from __future__ import annotations

from sparkmirror.monitoring.metrics.table.metric_row import (
    Merge,
    MetricRow,
    MetricType,
    counter,
    gauge,
)

SOURCE = "kafka_connect_mirror_mirrorsourceconnector_"
CHECKPOINT = "kafka_connect_mirror_mirrorcheckpointconnector_"
WORKER = "kafka_connect_worker_"
REBALANCE = "kafka_connect_worker_rebalance_"
COORDINATOR = "kafka_connect_coordinator_"

PARTITION_LABELS = ("partition", "source", "target", "topic")
GROUP_LABELS = ("group", *PARTITION_LABELS)
CONNECTOR, TASK, CLIENT = ("connector",), ("connector", "task"), ("clientid",)
STATES = ("running", "paused", "failed", "unassigned", "restarting", "destroyed")

FIGURES = "the task's reports, once a second"
STATUSES = "the status topic: tasks of this worker"
PLUGINS = "the connector's settings, and `GET /connector-plugins`"
MEMBER = "this worker's member of the group"


def _window(name: str, labels: tuple[str, ...], what: str, origin: str) -> tuple[MetricRow, ...]:
    """The last value, and three of the last 30 to 60 s, NaN if there were none."""
    most, least = Merge.MOST, Merge.LEAST
    return (
        gauge(name, labels, f"{what}: the last one.", origin, most),
        gauge(f"{name}_avg", labels, f"{what}: mean of the last minute.", origin, most),
        gauge(f"{name}_min", labels, f"{what}: least of the last minute.", origin, least),
        gauge(f"{name}_max", labels, f"{what}: most of the last minute.", origin, most),
    )


_MIRROR = (
    gauge(f"{SOURCE}record_count", PARTITION_LABELS, "Records stored on the target.", FIGURES),
    gauge(f"{SOURCE}record_rate", PARTITION_LABELS,
          "Records per second between scrapes, over at most a minute; NaN at the first one.",
          FIGURES),
    gauge(f"{SOURCE}byte_count", PARTITION_LABELS,
          "Bytes stored on the target, as batches take them in the log; MirrorMaker 2 counts the "
          "uncompressed values.", FIGURES),
    gauge(f"{SOURCE}byte_rate", PARTITION_LABELS,
          "Bytes per second between scrapes, over at most a minute; NaN at the first one.",
          FIGURES),
    *_window(f"{SOURCE}record_age_ms", PARTITION_LABELS,
             "Age of records when they were fetched", FIGURES),
    *_window(f"{SOURCE}replication_latency_ms", PARTITION_LABELS,
             "Time from a record's timestamp to its acknowledgement by the target", FIGURES),
    gauge(f"{SOURCE}replication_record_lag", PARTITION_LABELS,
          "Records that the target does not have yet (KIP-971; MirrorMaker 2 has no such metric).",
          FIGURES),
    *_window(f"{CHECKPOINT}checkpoint_latency_ms", GROUP_LABELS,
             "Time from reading a group's offsets to storing its checkpoint", "checkpoint task"),
)  # fmt: skip

_WORKER = (
    gauge(f"{WORKER}connector_count", (), "Connectors that run here: all on the leader, else none.",
          "the status topic: connectors of this worker"),
    gauge(f"{WORKER}task_count", (), "Tasks that this worker runs or holds paused.", STATUSES),
    *(
        row
        for kind in ("connector", "task")
        for row in (
            counter(f"{WORKER}{kind}_startup_attempts_total", (),
                    f"Attempts to start a {kind} here.", f"starts of {kind}s"),
            counter(f"{WORKER}{kind}_startup_success_total", (),
                    "Those that succeeded.", f"starts of {kind}s"),
            counter(f"{WORKER}{kind}_startup_failure_total", (),
                    "Those that failed.", f"starts of {kind}s"),
            gauge(f"{WORKER}{kind}_startup_success_percentage", (),
                  "Share of those that succeeded, 0 to 1 as in Connect; absent before the first.",
                  f"starts of {kind}s", Merge.LEAST),
            gauge(f"{WORKER}{kind}_startup_failure_percentage", (),
                  "Share of those that failed, 0 to 1 as in Connect; absent before the first.",
                  f"starts of {kind}s", Merge.MOST),
        )
    ),
    gauge(f"{WORKER}connector_total_task_count", CONNECTOR,
          "Tasks of a connector on this worker.", STATUSES),
    *(
        gauge(f"{WORKER}connector_{state}_task_count", CONNECTOR, f"Those that are {state}.",
              STATUSES)
        for state in STATES
    ),
)  # fmt: skip

_REBALANCE = (
    gauge(f"{REBALANCE}epoch", (), "Generation of the group.", MEMBER, Merge.MOST),
    gauge(f"{REBALANCE}rebalancing", (), "1 while this worker joins the group again.", MEMBER,
          Merge.MOST),
    counter(f"{REBALANCE}completed_rebalances_total", (), "Rebalances of this worker.", MEMBER),
    gauge(f"{REBALANCE}rebalance_avg_time_ms", (),
          "Mean duration of rebalances in the last minute; NaN without any.", MEMBER, Merge.MOST),
    gauge(f"{REBALANCE}rebalance_max_time_ms", (),
          "Longest rebalance of the last minute; NaN without any.", MEMBER, Merge.MOST),
    gauge(f"{REBALANCE}time_since_last_rebalance_ms", (), "Since the last one ended.", MEMBER,
          Merge.LEAST),
    gauge(f"{COORDINATOR}assigned_connectors", CLIENT,
          "Connectors of the group if this worker leads, else 0.", MEMBER),
    gauge(f"{COORDINATOR}assigned_tasks", CLIENT, "Tasks that the leader assigned to this worker.",
          MEMBER),
    gauge(f"{COORDINATOR}last_heartbeat_seconds_ago", CLIENT,
          "Since the coordinator last responded to a heartbeat.", MEMBER, Merge.MOST),
    gauge(f"{COORDINATOR}last_rebalance_seconds_ago", CLIENT, "Since the last rebalance ended.",
          MEMBER, Merge.LEAST),
    *(
        counter(f"{COORDINATOR}{what}_total", CLIENT, text, MEMBER)
        for what, text in (
            ("heartbeat", "Heartbeats to which the coordinator responded."),
            ("join", "Responses to requests to join."),
            ("sync", "Responses to requests for the assignment."),
            ("rebalance", "Rebalances that this worker completed."),
            ("failed_rebalance", "Rebalances that it began and did not complete."),
            ("rebalance_latency", "Milliseconds of all rebalances."),
        )
    ),
)  # fmt: skip

_INFO = (
    MetricRow("kafka_connect_version", MetricType.UNTYPED, "Version of Connect's REST API.",
              "as in `GET /`", (*CLIENT, "version"), Merge.MOST),
    MetricRow("kafka_connect_commit_id", MetricType.UNTYPED, "Commit id of that version.",
              "as in `GET /`", (*CLIENT, "commit_id"), Merge.MOST),
    gauge("kafka_connect_start_time_seconds", CLIENT, "When this process began to serve, in "
          "seconds since 1970.", "clock", Merge.LEAST),
)  # fmt: skip

_TASKS = (
    gauge("kafka_connect_connector_status", ("connector", "status", "task"),
          "1 for the state that a task of this worker is in.", STATUSES, Merge.MOST),
    gauge("kafka_connect_connector_task_status", ("connector", "status", "task"),
          "The same, under the name that Strimzi's rules for Connect give it.", STATUSES,
          Merge.MOST),
    *(
        gauge(f"kafka_connect_connector_connector_{what}", ("connector", f"connector_{what}"),
              f"1 for the {what} of each connector that runs on this worker, as Strimzi's rules "
              "for Connect name it.", PLUGINS, Merge.MOST)
        for what in ("class", "type", "version")
    ),
    gauge("kafka_connect_connector_task_offset_commit_avg_time_ms", TASK,
          "Mean time to store positions, of those of the last minute; NaN without any.", FIGURES,
          Merge.MOST),
    gauge("kafka_connect_connector_task_offset_commit_max_time_ms", TASK,
          "Longest time to store positions in the last minute; NaN without any.", FIGURES,
          Merge.MOST),
    counter("kafka_connect_source_task_source_record_write_total", TASK,
            "Records, checkpoints or heartbeats stored on the target.", FIGURES),
    counter("kafka_connect_source_task_source_record_poll_total", TASK,
            "Records fetched, or checkpoints and heartbeats made.", FIGURES),
    gauge("kafka_connect_source_task_source_record_active_count", ("_objectname", *TASK),
          "Records fetched that the target has not acknowledged yet.", FIGURES),
    gauge("kafka_connect_task_error_total_record_failures", TASK,
          "The same as those skipped: any other record that fails is tried again.", FIGURES),
    gauge("kafka_connect_task_error_total_records_skipped", TASK,
          "Records that the target rejected, skipped by errors.tolerance=all.", FIGURES),
)  # fmt: skip

_CLIENTS = (
    gauge("kafka_consumer_fetch_manager_records_lag",
          ("_objectname", *CLIENT, "partition", "topic"),
          "Records that the target does not have yet. Kafka's consumers count from what they have "
          "fetched.", FIGURES),
    counter("kafka_consumer_fetch_manager_records_consumed_total", (*CLIENT, "topic"),
            "Records copied; without `topic`: of all.", FIGURES),
    counter("kafka_consumer_fetch_manager_bytes_consumed_total", (*CLIENT, "topic"),
            "Their bytes, as batches take them in the log; without `topic`: of all.", FIGURES),
    gauge("kafka_producer_buffer_available_bytes", CLIENT,
          "Bytes that may still wait for the target before fetching pauses.", FIGURES),
    counter("kafka_producer_record_send_total", CLIENT, "Records stored on the target.", FIGURES),
    counter("kafka_producer_topic_record_send_total", (*CLIENT, "topic"),
            "Records stored on the target.", FIGURES),
    counter("kafka_producer_topic_byte_total", (*CLIENT, "topic"),
            "Their bytes, as batches take them in the log.", FIGURES),
    *(
        row
        for role, side in (("consumer", "source"), ("producer", "target"))
        for row in (
            counter(f"kafka_{role}_incoming_byte_total", CLIENT,
                    f"Bytes received from the {side} cluster's brokers.", FIGURES),
            counter(f"kafka_{role}_outgoing_byte_total", CLIENT,
                    f"Bytes sent to the {side} cluster's brokers.", FIGURES),
            gauge(f"kafka_{role}_connection_count", CLIENT,
                  f"Open connections to the {side} cluster.", FIGURES),
        )
    ),
)  # fmt: skip

KAFKA_ROWS = (*_MIRROR, *_WORKER, *_REBALANCE, *_INFO, *_TASKS, *_CLIENTS)
