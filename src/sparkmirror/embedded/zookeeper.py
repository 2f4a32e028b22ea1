"""The ZooKeeper of a Kafka cluster before 3.3: one server, which lives as long as the cluster."""

from __future__ import annotations

from pathlib import Path

from sparkmirror.embedded.java import QUICK_JVM_ARGS, java_command, store_properties
from sparkmirror.embedded.kafka_jars import KafkaJars
from sparkmirror.embedded.ports import HOST
from sparkmirror.embedded.process import Child, start_child

FOLDER = "zookeeper"
_HEAP = "192m"
# Brokers wait for it: a server that starts beside them is slower than they are.
CONNECT_MS = "60000"
_MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


class ZooKeeper:
    """One server on 127.0.0.1, started from the jars of a broker."""

    def __init__(self, jars: KafkaJars, folder: Path, port: int) -> None:
        self._folder = folder / FOLDER
        settings = self._folder / "zookeeper.properties"
        properties = {
            "dataDir": str(self._folder / "data"),
            "clientPort": str(port),
            "clientPortAddress": HOST,
            "maxClientCnxns": "0",
            "admin.enableServer": "false",
        }
        store_properties(settings, properties)
        self._command = java_command(
            jars, self._folder, _MAIN_CLASS, [settings], heap=_HEAP, jvm_args=QUICK_JVM_ARGS
        )
        self.address = f"{HOST}:{port}"
        self.child: Child | None = None

    def start(self, *, detached: bool) -> None:
        """Start the process; brokers retry until it responds."""
        self.child = start_child(self._command, self._folder / "log", detached=detached)
