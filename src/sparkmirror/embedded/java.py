"""Command lines for the Java programs in Kafka's jars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import javaproperties

from sparkmirror.embedded.kafka_jars import KafkaJars
from sparkmirror.spark import machine

# Set by Kafka's own start scripts, so a benchmark measures brokers as users run them.
SERVER_JVM_ARGS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
# For tests: starts faster and takes less of a small machine, but its peak speed is lower.
QUICK_JVM_ARGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")

_LOG4J2 = """\
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=[%d] %p %m (%c)%n
rootLogger.level=INFO
rootLogger.appenderRef.out.ref=out
"""
_LOG4J1 = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


def java_command(
    jars: KafkaJars,
    folder: Path,
    main_class: str,
    args: Sequence[str | Path],
    *,
    heap: str,
    jvm_args: Sequence[str] = SERVER_JVM_ARGS,
) -> list[str | Path]:
    """The command that runs `main_class`, logging to stdout; its log settings go to `folder`."""
    logging = _log_setting(jars, folder)
    jvm: list[str | Path] = [machine.java_program(), f"-Xmx{heap}", *jvm_args, logging]
    return [*jvm, "-cp", jars.class_path, main_class, *args]


def _log_setting(jars: KafkaJars, folder: Path) -> str:
    if jars.release.logs_with_log4j1:
        name, text, key = "log4j.properties", _LOG4J1, "log4j.configuration=file:"
    else:
        name, text, key = "log4j2.properties", _LOG4J2, "log4j2.configurationFile="
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return f"-D{key}{folder / name}"


def store_properties(path: Path, properties: Mapping[str, str]) -> None:
    """Write a .properties file that Java reads back as the same strings."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(javaproperties.dumps(properties, timestamp=False), encoding="ascii")
