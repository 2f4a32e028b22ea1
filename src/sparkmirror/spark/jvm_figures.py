"""What the JVM of Spark's driver says of itself: its management beans, through py4j.

Runs on: worker. Each value is a call to the JVM of a fraction of a millisecond.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class JvmMemory(NamedTuple):
    """Bytes of an area or a pool; -1 where the JVM has none."""

    used: int
    committed: int
    max: int
    init: int


class JvmBuffers(NamedTuple):
    """One pool of buffers outside the heap."""

    used_bytes: int
    capacity_bytes: int
    used_buffers: int


@dataclass(frozen=True, slots=True)
class JvmFigures:
    """`collections`: by collector, how many and their seconds. `executors`: without the driver,
    where that runs no tasks."""

    areas: Mapping[str, JvmMemory] = field(default_factory=dict)
    pools: Mapping[str, JvmMemory] = field(default_factory=dict)
    collections: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    threads: int = 0
    daemon_threads: int = 0
    peak_threads: int = 0
    started_threads: int = 0
    loaded_classes: int = 0
    all_loaded_classes: int = 0
    unloaded_classes: int = 0
    compilation_seconds: float | None = None
    buffers: Mapping[str, JvmBuffers] = field(default_factory=dict)
    runtime: tuple[str, str, str] = ("", "", "")
    executors: int = 0


def read_jvm(jvm: Any, executors: int) -> JvmFigures:
    """All of it; raises what py4j raises when the JVM is gone."""
    management = jvm.java.lang.management
    factory = management.ManagementFactory
    memory, threads = factory.getMemoryMXBean(), factory.getThreadMXBean()
    classes, compiler = factory.getClassLoadingMXBean(), factory.getCompilationMXBean()
    properties = jvm.java.lang.System
    names = "java.runtime.name", "java.vm.vendor", "java.runtime.version"
    buffer_bean = jvm.java.lang.Class.forName("java.lang.management.BufferPoolMXBean")
    return JvmFigures(
        areas={
            "heap": _memory(memory.getHeapMemoryUsage()),
            "nonheap": _memory(memory.getNonHeapMemoryUsage()),
        },
        pools={
            str(each.getName()): _memory(each.getUsage())
            for each in factory.getMemoryPoolMXBeans()
            if each.isValid()
        },
        collections={
            str(each.getName()): (int(each.getCollectionCount()), each.getCollectionTime() / 1000)
            for each in factory.getGarbageCollectorMXBeans()
        },
        threads=int(threads.getThreadCount()),
        daemon_threads=int(threads.getDaemonThreadCount()),
        peak_threads=int(threads.getPeakThreadCount()),
        started_threads=int(threads.getTotalStartedThreadCount()),
        loaded_classes=int(classes.getLoadedClassCount()),
        all_loaded_classes=int(classes.getTotalLoadedClassCount()),
        unloaded_classes=int(classes.getUnloadedClassCount()),
        compilation_seconds=None if compiler is None else compiler.getTotalCompilationTime() / 1000,
        buffers={
            str(each.getName()): JvmBuffers(
                int(each.getMemoryUsed()), int(each.getTotalCapacity()), int(each.getCount())
            )
            for each in factory.getPlatformMXBeans(buffer_bean)
        },
        runtime=_three([str(properties.getProperty(name)) for name in names]),
        executors=executors,
    )


def _memory(usage: Any) -> JvmMemory:
    values = usage.getUsed(), usage.getCommitted(), usage.getMax(), usage.getInit()
    return JvmMemory(*map(int, values))


def _three(texts: list[str]) -> tuple[str, str, str]:
    name, vendor, version = texts
    return name, vendor, version
