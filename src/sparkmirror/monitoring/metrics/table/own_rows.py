"""Metrics that Connect and MirrorMaker 2 lack; all names begin with `sparkmirror_`.

Runs on: worker. Pure.
"""

from __future__ import annotations

from sparkmirror.monitoring.metrics.table.metric_row import (
    Merge,
    MetricRow,
    MetricType,
    counter,
    gauge,
)

FLOW = ("source", "target", "connector")
PARTITION = (*FLOW, "topic", "partition")
LAG = "the lag model: reports of tasks; of tasks that do not run, stored positions"
REPORTS = "the task's reports, once a second"
CHECKPOINTS, HEARTBEATS = "checkpoint task", "heartbeat task"
GROUP, SPARK = "this worker's member of the group", "Spark's driver"

_FLOWS = (
    counter("sparkmirror_flow_records_total", FLOW, "Records stored on the target.", LAG),
    counter("sparkmirror_flow_bytes_total", FLOW,
            "Their bytes, as batches take them in the log.", LAG),
    gauge("sparkmirror_flow_lag_records", FLOW,
          "Records that the target does not have yet, of partitions where that is known.", LAG),
    gauge("sparkmirror_flow_lag_bytes", FLOW,
          "Their bytes, estimated from the mean size of those that were copied.", LAG),
    gauge("sparkmirror_flow_lag_seconds", FLOW,
          "Age of the oldest record that the target does not have yet; 0: it has all.", LAG,
          Merge.MOST),
    gauge("sparkmirror_flow_seconds_until_loss", FLOW,
          "Until retention of the source deletes the first record that was not copied; the whole "
          "retention if all were; absent without a limit.", LAG, Merge.LEAST),
    gauge("sparkmirror_flow_catch_up_seconds", FLOW,
          "Estimate of the time until the backlog is copied; absent unless it falls.", LAG,
          Merge.MOST),
    gauge("sparkmirror_flow_partitions", (*FLOW, "state"),
          "Partitions that are live, idle, catching_up, paused, stuck or failed.", LAG),
    gauge("sparkmirror_flow_unknown_partitions", FLOW,
          "Partitions whose lag is not known: the other figures leave them out.", LAG),
    counter("sparkmirror_flow_lost_records_total", FLOW,
            "Records that the source deleted before they were copied.", LAG),
    counter("sparkmirror_flow_skipped_records_total", FLOW,
            "Records that the target rejected, skipped by errors.tolerance=all.", LAG),
    MetricRow("sparkmirror_flow_replication_latency_seconds", MetricType.HISTOGRAM,
              "Time from a record's timestamp to its acknowledgement by the target, per record.",
              REPORTS, FLOW),
    counter("sparkmirror_flow_slow_batches_total", (*FLOW, "reason"),
            "Batches that could not be passed on as they were.", REPORTS),
    gauge("sparkmirror_heartbeat_age_seconds", FLOW,
          "Age of the newest heartbeat that the target acknowledged; without any: since the task "
          "began.", HEARTBEATS, Merge.MOST),
    gauge("sparkmirror_groups", (*FLOW, "state"),
          "Consumer groups by result of the last sync of their offsets: written, unchanged, "
          "already_ahead, no_checkpoint, active, beyond_end, not_described, offsets_unread, error.",
          CHECKPOINTS),
    gauge("sparkmirror_group_sync", (*FLOW, "group", "state"),
          "1 for the result of a group; of 1,000 groups at most, those with problems first.",
          CHECKPOINTS, Merge.MOST),
)  # fmt: skip

_PARTITIONS = (
    gauge("sparkmirror_lag_records", PARTITION,
          "Records that the target does not have yet.", LAG),
    gauge("sparkmirror_lag_bytes", PARTITION,
          "Their bytes, estimated from the mean size of those that were copied.", LAG),
    gauge("sparkmirror_lag_seconds", PARTITION,
          "Age of the oldest record that the target does not have yet; 0: it has all.", LAG,
          Merge.MOST),
    gauge("sparkmirror_seconds_until_loss", PARTITION,
          "Until retention of the source deletes the first record that was not copied; the whole "
          "retention if all were; absent without a limit.", LAG, Merge.LEAST),
    gauge("sparkmirror_partition_stuck", (*PARTITION, "problem"),
          "1 for each partition that is stuck or failed; 100 of a flow at most.", LAG, Merge.MOST),
)  # fmt: skip

_WORKER = (
    gauge("sparkmirror_build_info", ("version",), "1; the version of sparkmirror.", "the package",
          Merge.MOST),
    gauge("sparkmirror_worker_leader", ("group",), "1 if this worker leads its group, else 0.",
          GROUP),
    gauge("sparkmirror_worker_healthy", ("group",), "1 if `GET /health` says so, else 0.",
          "as in `GET /health`"),
    gauge("sparkmirror_worker_members", ("group",), "Workers in the group.", GROUP),
    gauge("sparkmirror_connector_state", ("group", "connector", "state"),
          "1 for the state of each connector of the group, as in its status.", "the status topic",
          Merge.MOST),
    gauge("sparkmirror_task_state", ("group", "connector", "task", "state"),
          "1 for the state of each task of this worker, as in its status.", "the status topic",
          Merge.MOST),
    counter("sparkmirror_task_restarts_total", ("group", "connector", "task"),
            "Attempts of a copy task after its first.", "the task's runner"),
    gauge("sparkmirror_spark_up", (), "1 while Spark runs; 0 while it does not, or starts.", SPARK),
    gauge("sparkmirror_spark_executors", (), "Executors that Spark has.", SPARK),
    gauge("sparkmirror_spark_slots", (), "Tasks that they can run at once.", SPARK),
    gauge("sparkmirror_spark_tasks", (), "Copy tasks of this worker that are connected to it.",
          "the tasks' runners"),
    gauge("sparkmirror_certificate_expiry_timestamp_seconds", ("use", "name"),
          "When certificates expire, in seconds since 1970. `use`: keystore (the first of the "
          "chain) or truststore (the last of all); `name`: listeners, or a cluster.", "the files",
          Merge.LEAST),
    gauge("sparkmirror_metrics_part_up", ("part",),
          "1; 0 if a part of these metrics could not be read in time, and is left out.",
          "the scrape", Merge.LEAST),
    gauge("sparkmirror_metrics_level", ("level",),
          "1; whether series are per partition, topic or flow.", "the scrape", Merge.MOST),
)  # fmt: skip

OWN_ROWS = (*_FLOWS, *_PARTITIONS, *_WORKER)
