"""Metrics of Spark's driver, a JVM, and of this process; the names are those of client_java.

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

MXBEANS = "management beans of the JVM of Spark's driver; absent until Spark is up"
PROC = "/proc, of the Python process"
AREA, POOL = ("area",), ("pool",)

JVM_ROWS = (
    *(
        gauge(f"jvm_memory_{kind}_bytes", AREA, f"{text} of a JVM memory area.", MXBEANS)
        for kind, text in (
            ("used", "Used bytes"),
            ("committed", "Committed bytes"),
            ("max", "Most bytes; -1: no limit"),
            ("init", "Initial bytes"),
        )
    ),
    *(
        gauge(f"jvm_memory_pool_{kind}_bytes", POOL, f"{text} of a JVM memory pool.", MXBEANS)
        for kind, text in (
            ("used", "Used bytes"),
            ("committed", "Committed bytes"),
            ("max", "Most bytes; -1: no limit"),
            ("init", "Initial bytes"),
        )
    ),
    MetricRow("jvm_gc_collection_seconds", MetricType.SUMMARY, "Garbage collections.", MXBEANS,
              ("gc",)),
    gauge("jvm_threads_current", (), "Threads.", MXBEANS),
    gauge("jvm_threads_daemon", (), "Daemon threads.", MXBEANS),
    gauge("jvm_threads_peak", (), "The most threads there were.", MXBEANS),
    counter("jvm_threads_started_total", (), "Threads started.", MXBEANS),
    gauge("jvm_classes_currently_loaded", (), "Classes that are loaded.", MXBEANS),
    counter("jvm_classes_loaded_total", (), "Classes loaded since the start.", MXBEANS),
    counter("jvm_classes_unloaded_total", (), "Classes unloaded since the start.", MXBEANS),
    counter("jvm_compilation_time_seconds_total", (), "Time spent compiling.", MXBEANS),
    gauge("jvm_buffer_pool_used_bytes", POOL, "Used bytes of a buffer pool.", MXBEANS),
    gauge("jvm_buffer_pool_capacity_bytes", POOL, "Capacity of a buffer pool.", MXBEANS),
    gauge("jvm_buffer_pool_used_buffers", POOL, "Buffers of a buffer pool.", MXBEANS),
    gauge("jvm_runtime_info", ("runtime", "vendor", "version"), "1; what runs it.", MXBEANS,
          Merge.MOST),
)  # fmt: skip

PROCESS_ROWS = (
    counter("process_cpu_seconds_total", (), "User and system CPU time.", PROC),
    gauge("process_max_fds", (), "Most open file descriptors.", PROC),
    gauge("process_open_fds", (), "Open file descriptors.", PROC),
    gauge("process_resident_memory_bytes", (), "Resident memory.", PROC),
    gauge("process_start_time_seconds", (), "Start, in seconds since 1970.", PROC),
    gauge("process_virtual_memory_bytes", (), "Virtual memory.", PROC),
)
