"""Kafka's own command-line tools, as its scripts in bin/ run them."""

from __future__ import annotations

import subprocess

from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.java import QUICK_JVM_ARGS
from sparkmirror.embedded.kafka_jars import kafka_jars
from sparkmirror.spark import machine

# What each script runs (Kafka 4.3).
CLASSES = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
}
MIRROR_FORMATTERS = "org.apache.kafka.connect.mirror.formatters"
_SECONDS = 120.0


def run_tool(cluster: KafkaCluster, tool: str, *words: str) -> list[str]:
    """The lines that the tool prints about a cluster; fails if it fails."""
    command = [
        *(str(machine.java_program()), "-Xmx256m", *QUICK_JVM_ARGS, "-Dlog4j2.level=OFF"),
        *("-cp", kafka_jars().class_path, CLASSES[tool]),
        *("--bootstrap-server", cluster.bootstrap_servers, *words),
    ]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    assert ended.returncode == 0, f"{tool} {words}: {ended.stdout}{ended.stderr}"
    return ended.stdout.splitlines()


def consume(cluster: KafkaCluster, topic: str, count: int, *words: str) -> list[str]:
    """The first `count` records of partition 0 as kafka-console-consumer prints them."""
    from_start = ("--partition", "0", "--offset", "earliest", "--max-messages", str(count))
    return run_tool(cluster, "kafka-console-consumer", "--topic", topic, *from_start, *words)


def format_records(cluster: KafkaCluster, topic: str, count: int, formatter: str) -> list[str]:
    """The same through one of MirrorMaker 2's formatters."""
    return consume(cluster, topic, count, "--formatter", f"{MIRROR_FORMATTERS}.{formatter}")
