"""Samples of what is copied: flows, their topics and partitions, and the clients of their tasks.

Runs on: worker, during a scrape.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from sparkmirror.config.masking import mask
from sparkmirror.config.worker.metrics_keys import PerPartition
from sparkmirror.monitoring.lag.flow_lag import FlowLag
from sparkmirror.monitoring.lag.partition_lag import PartitionLag, PartitionState
from sparkmirror.monitoring.metrics.detail import Detail, LagRow, detail_of, lag_rows
from sparkmirror.monitoring.metrics.jmx_names import (
    consumer_id,
    jmx_name,
    object_name,
    producer_id,
)
from sparkmirror.monitoring.metrics.rates import CounterRates
from sparkmirror.monitoring.metrics.sample_sheet import SampleSheet
from sparkmirror.monitoring.metrics.table.kafka_rows import SOURCE
from sparkmirror.spark.figures import LATENCY_BOUNDS_MS, Window

MOST_STUCK = 100
LONGEST_PROBLEM = 200
BOUNDS_SECONDS = tuple(bound / 1000 for bound in LATENCY_BOUNDS_MS)
TROUBLED = (PartitionState.STUCK, PartitionState.FAILED)


class LagReader(Protocol):
    """What is asked of `LagModel`; its methods do not wait."""

    def partitions(self) -> Sequence[PartitionLag]: ...
    def flows(self) -> Sequence[FlowLag]: ...


class FlowSamples:
    """Fills in the families of MirrorMaker 2's source connector, consumers, producers, and ours."""

    def __init__(self, lag: LagReader, per_partition: PerPartition) -> None:
        self._lag = lag
        self._per_partition = per_partition
        self._rates = CounterRates()

    def __call__(self, sheet: SampleSheet) -> None:
        partitions = self._lag.partitions()
        for flow in self._lag.flows():
            _add_flow(sheet, flow)
        detail = detail_of(self._per_partition, partitions)
        sheet.add("sparkmirror_metrics_level", 1.0, detail.value)
        for row in lag_rows(partitions, detail):
            self._add_mirror(sheet, row)
            _add_lag(sheet, row)
        self._rates.forget_others()
        _add_clients(sheet, partitions, detail)
        _add_stuck(sheet, partitions)

    def _add_mirror(self, sheet: SampleSheet, row: LagRow) -> None:
        source, target = ends_of(row.flow)
        labels = row.partition, source, target, row.target
        key = (row.flow, row.connector, row.target, row.partition)
        records, size = self._rates.per_second(key, row.records, row.bytes)
        sheet.add(f"{SOURCE}record_count", row.records, *labels)
        sheet.add(f"{SOURCE}record_rate", records, *labels)
        sheet.add(f"{SOURCE}byte_count", row.bytes, *labels)
        sheet.add(f"{SOURCE}byte_rate", size, *labels)
        add_window(sheet, f"{SOURCE}record_age_ms", row.age, *labels)
        add_window(sheet, f"{SOURCE}replication_latency_ms", row.latency, *labels)
        sheet.add(f"{SOURCE}replication_record_lag", row.behind, *labels)


def ends_of(flow: str) -> tuple[str, str]:
    """The aliases of a flow's clusters."""
    source, _, target = flow.partition("->")
    return source, target


def add_window(sheet: SampleSheet, name: str, window: Window, *labels: str | None) -> None:
    """The last value, and mean, least and most of the last minute: NaN where there is none."""
    known = window.count > 0
    sheet.add(name, window.last if known or window.last else math.nan, *labels)
    sheet.add(f"{name}_avg", window.total / window.count if known else math.nan, *labels)
    sheet.add(f"{name}_min", window.least if known else math.nan, *labels)
    sheet.add(f"{name}_max", window.most if known else math.nan, *labels)


def _add_flow(sheet: SampleSheet, flow: FlowLag) -> None:
    labels = (*ends_of(flow.flow), flow.connector)
    sheet.add("sparkmirror_flow_records_total", flow.records, *labels)
    sheet.add("sparkmirror_flow_bytes_total", flow.bytes, *labels)
    sheet.add("sparkmirror_flow_lag_records", flow.records_behind, *labels)
    sheet.add("sparkmirror_flow_lag_bytes", flow.bytes_behind, *labels)
    sheet.add("sparkmirror_flow_lag_seconds", flow.seconds_behind, *labels)
    sheet.add("sparkmirror_flow_seconds_until_loss", flow.seconds_until_loss, *labels)
    sheet.add("sparkmirror_flow_catch_up_seconds", flow.catch_up_seconds, *labels)
    sheet.add("sparkmirror_flow_unknown_partitions", flow.unknown, *labels)
    sheet.add("sparkmirror_flow_lost_records_total", flow.lost_records, *labels)
    sheet.add("sparkmirror_flow_skipped_records_total", flow.skipped_records, *labels)
    for state in PartitionState:
        name = state.value.replace(" ", "_")
        sheet.add("sparkmirror_flow_partitions", flow.states.get(state, 0), *labels, name)
    for reason, count in flow.slow.items():
        sheet.add("sparkmirror_flow_slow_batches_total", count, *labels, reason)
    if flow.latency_buckets:
        sheet.add_histogram(
            "sparkmirror_flow_replication_latency_seconds",
            BOUNDS_SECONDS,
            flow.latency_buckets,
            flow.latency_sum_ms / 1000,
            *labels,
        )


def _add_lag(sheet: SampleSheet, row: LagRow) -> None:
    labels = (*ends_of(row.flow), row.connector, row.source, row.partition)
    sheet.add("sparkmirror_lag_records", row.behind, *labels)
    sheet.add("sparkmirror_lag_bytes", row.bytes_behind, *labels)
    sheet.add("sparkmirror_lag_seconds", row.seconds, *labels)
    sheet.add("sparkmirror_seconds_until_loss", row.until_loss, *labels)


def _add_stuck(sheet: SampleSheet, partitions: Sequence[PartitionLag]) -> None:
    told: Counter[str] = Counter()
    for lag in partitions:
        if lag.state in TROUBLED and told[lag.connector] < MOST_STUCK:
            told[lag.connector] += 1
            place = lag.source.topic, str(lag.source.partition)
            labels = (
                *ends_of(lag.flow),
                lag.connector,
                *place,
                mask(lag.problem)[:LONGEST_PROBLEM],
            )
            sheet.add("sparkmirror_partition_stuck", 1.0, *labels)


def _add_clients(sheet: SampleSheet, partitions: Sequence[PartitionLag], detail: Detail) -> None:
    """Under the names that the clients of MirrorMaker 2's tasks have."""
    for lag in partitions:
        consumer = consumer_id(lag.flow, lag.connector, lag.task)
        producer = producer_id(lag.connector, lag.task)
        _add_consumed(sheet, consumer, lag, None)
        sheet.add("kafka_producer_record_send_total", lag.records, producer)
        if detail is not Detail.FLOW:
            _add_consumed(sheet, consumer, lag, lag.source.topic)
            sent = producer, lag.target.topic
            sheet.add("kafka_producer_topic_record_send_total", lag.records, *sent)
            sheet.add("kafka_producer_topic_byte_total", lag.bytes, *sent)
        _add_records_lag(sheet, consumer, lag, detail)


def _add_consumed(sheet: SampleSheet, consumer: str, lag: PartitionLag, topic: str | None) -> None:
    prefix = "kafka_consumer_fetch_manager_"
    sheet.add(f"{prefix}records_consumed_total", lag.records, consumer, topic)
    sheet.add(f"{prefix}bytes_consumed_total", lag.bytes, consumer, topic)


def _add_records_lag(sheet: SampleSheet, consumer: str, lag: PartitionLag, detail: Detail) -> None:
    keys, partition, topic = f"client-id={consumer}", None, None
    if detail is not Detail.FLOW:
        topic = lag.source.topic
        keys += f", topic={jmx_name(topic)}"
    if detail is Detail.PARTITION:
        partition = str(lag.source.partition)
        keys += f", partition={partition}"
    name = object_name("kafka.consumer", "consumer-fetch-manager-metrics", keys, "records-lag")
    labels = name, consumer, partition, topic
    sheet.add("kafka_consumer_fetch_manager_records_lag", lag.records_behind, *labels)
