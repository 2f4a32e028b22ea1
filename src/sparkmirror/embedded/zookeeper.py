"""The ZooKeeper of a Kafka cluster before 3.3: one server, for the life of the cluster."""

from __future__ import annotations

from pathlib import Path

from sparkmirror.embedded.java import QUICK_JVM_ARGS, java_command, store_properties
from sparkmirror.embedded.kafka_jars import KafkaJars
from sparkmirror.embedded.ports import HOST
from sparkmirror.embedded.process import ManagedProcess

FOLDER = "zookeeper"
_HEAP = "192m"
# Brokers wait for it, because it starts more slowly than they do.
CONNECT_MS = "60000"
_MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


class ZooKeeper(ManagedProcess):
    """One server on 127.0.0.1, from the jars of a broker; brokers retry until it responds."""

    def __init__(self, jars: KafkaJars, folder: Path, port: int) -> None:
        own = folder / FOLDER
        settings = own / "zookeeper.properties"
        properties = {
            "dataDir": str(own / "data"),
            "clientPort": str(port),
            "clientPortAddress": HOST,
            "maxClientCnxns": "0",
            "admin.enableServer": "false",
        }
        store_properties(settings, properties)
        command = java_command(
            jars, own, _MAIN_CLASS, [settings], heap=_HEAP, jvm_args=QUICK_JVM_ARGS
        )
        super().__init__("ZooKeeper", own / "log", command)
        self.address = f"{HOST}:{port}"
