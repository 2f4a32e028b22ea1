"""Samples of what a worker runs on: Spark and its JVM, this process, certificates.

Runs on: worker, during a scrape.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.process_collector import ProcessCollector

from sparkmirror.connect.runtime.worker import Worker
from sparkmirror.monitoring.metrics.sample_sheet import SampleSheet
from sparkmirror.monitoring.metrics.table.jvm_rows import PROCESS_ROWS
from sparkmirror.monitoring.metrics.timely_part import TimelyReader
from sparkmirror.monitoring.monitored import Monitored
from sparkmirror.spark.jvm_figures import JvmFigures
from sparkmirror.wire.tls.expiry import expiry_times
from sparkmirror.wire.tls.tls_context import TlsSettings

# How often certificates are read from their files.
CERTIFICATE_SECONDS = 300.0

ExpiryTimes = Mapping[tuple[str, str], float]


class SparkSamples:
    """Spark, and the JVM of its driver; without them before it is up."""

    def __init__(self, monitored: Monitored) -> None:
        self._monitored = monitored
        self._reader = TimelyReader("jvm", self._read)

    def __call__(self, sheet: SampleSheet) -> None:
        sparks = self._sparks()
        is_up = any(spark.is_up for spark in sparks)
        sheet.add("sparkmirror_spark_up", is_up)
        if not is_up:
            return
        jvm, slots = self._reader.read()
        sheet.add("sparkmirror_spark_executors", jvm.executors)
        sheet.add("sparkmirror_spark_slots", slots)
        _add_jvm(sheet, jvm)

    def _sparks(self) -> set[Worker]:
        return {group.cluster.spark for group in self._monitored()}

    def _read(self) -> tuple[JvmFigures, int]:
        for spark in self._sparks():
            engine = spark.engine
            if engine is not None:
                return engine.jvm_figures(), engine.slots
        return JvmFigures(), 0


def _add_jvm(sheet: SampleSheet, jvm: JvmFigures) -> None:
    for prefix, memories in (("jvm_memory_", jvm.areas), ("jvm_memory_pool_", jvm.pools)):
        for name, memory in memories.items():
            for kind in ("used", "committed", "max", "init"):
                sheet.add(f"{prefix}{kind}_bytes", getattr(memory, kind), name)
    for name, (count, seconds) in jvm.collections.items():
        sheet.add_summary("jvm_gc_collection_seconds", count, seconds, name)
    sheet.add("jvm_threads_current", jvm.threads)
    sheet.add("jvm_threads_daemon", jvm.daemon_threads)
    sheet.add("jvm_threads_peak", jvm.peak_threads)
    sheet.add("jvm_threads_started_total", jvm.started_threads)
    sheet.add("jvm_classes_currently_loaded", jvm.loaded_classes)
    sheet.add("jvm_classes_loaded_total", jvm.all_loaded_classes)
    sheet.add("jvm_classes_unloaded_total", jvm.unloaded_classes)
    sheet.add("jvm_compilation_time_seconds_total", jvm.compilation_seconds)
    for name, buffers in jvm.buffers.items():
        sheet.add("jvm_buffer_pool_used_bytes", buffers.used_bytes, name)
        sheet.add("jvm_buffer_pool_capacity_bytes", buffers.capacity_bytes, name)
        sheet.add("jvm_buffer_pool_used_buffers", buffers.used_buffers, name)
    sheet.add("jvm_runtime_info", 1.0, *jvm.runtime)


class ProcessSamples:
    """This process, as prometheus-client reads it."""

    def __init__(self) -> None:
        self._collector = ProcessCollector(registry=CollectorRegistry())

    def __call__(self, sheet: SampleSheet) -> None:
        known = {row.name for row in PROCESS_ROWS}
        for family in self._collector.collect():
            for sample in family.samples:
                if sample.name in known:
                    sheet.add(sample.name, sample.value)


class CertificateSamples:
    """When certificates expire, of the REST API and of the connections to clusters."""

    def __init__(
        self,
        settings: Callable[[], Iterator[tuple[str, TlsSettings]]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`settings`: (name, TLS settings) of all that have some."""
        self._settings = settings
        self._clock = clock
        self._read_at = float("-inf")
        self._times: ExpiryTimes = {}
        self._reader = TimelyReader("certificates", self._read)

    def __call__(self, sheet: SampleSheet) -> None:
        if self._clock() - self._read_at >= CERTIFICATE_SECONDS:
            self._times = self._reader.read()
            self._read_at = self._clock()
        for (use, name), ends in self._times.items():
            sheet.add("sparkmirror_certificate_expiry_timestamp_seconds", ends, use, name)

    def _read(self) -> ExpiryTimes:
        return {
            (use, name): ends
            for name, settings in self._settings()
            for use, ends in expiry_times(settings)
        }
