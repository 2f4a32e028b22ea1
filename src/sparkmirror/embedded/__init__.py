"""Real Kafka brokers, genuine MirrorMaker 2 and Connect, and a Spark cluster, as local processes.

For the demo, the tests and the benchmark only: the product itself needs no Kafka jar.
Runs on: the user's machine; never on a Spark executor.
"""

from __future__ import annotations

from sparkmirror.embedded.connect_worker import ConnectWorker
from sparkmirror.embedded.kafka_cluster import Broker, KafkaCluster
from sparkmirror.embedded.kafka_releases import KAFKA_VERSION
from sparkmirror.embedded.mirror_maker import GenuineMirrorMaker, run_java_tool
from sparkmirror.embedded.spark_cluster import SparkCluster

__all__ = [
    "KAFKA_VERSION",
    "Broker",
    "ConnectWorker",
    "GenuineMirrorMaker",
    "KafkaCluster",
    "SparkCluster",
    "run_java_tool",
]
