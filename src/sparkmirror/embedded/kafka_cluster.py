"""A real Kafka cluster of one to three brokers, each a KRaft broker and controller in one.

Releases before 3.3 get a ZooKeeper instead of controllers.

    folder/
      broker-1/server.properties   its settings           broker-1/log    its output
      broker-1/data/               its partitions

Everything listens on 127.0.0.1. Ports are reserved from `start` to `stop`, so a broker that is
killed and started again keeps its address.
"""

from __future__ import annotations

import base64
import shutil
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from sparkmirror.embedded.java import SERVER_JVM_ARGS, java_command, store_properties
from sparkmirror.embedded.kafka_jars import KafkaJars, kafka_jars
from sparkmirror.embedded.kafka_releases import KAFKA_VERSION, Release
from sparkmirror.embedded.ports import HOST, ReservedPort
from sparkmirror.embedded.probe import ProbeResponse, ask
from sparkmirror.embedded.process import (
    READY_SECONDS,
    ManagedProcess,
    log_tail,
    stop_processes,
)
from sparkmirror.embedded.zookeeper import CONNECT_MS, ZooKeeper
from sparkmirror.embedded.zookeeper import FOLDER as ZOOKEEPER_FOLDER
from sparkmirror.errors import ConfigError, TransportError
from sparkmirror.retry import wait_for

MOST_BROKERS = 3
_STOP_SECONDS = 20.0
_STILL_REGISTERED = "KeeperErrorCode = NodeExists"


class Broker(ManagedProcess):
    """One node of a cluster; its process may be started, stopped, killed and paused by tests."""

    def __init__(
        self,
        node_id: int,
        port: int,
        folder: Path,
        command: Sequence[str | Path],
        other_ports: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        super().__init__(f"broker {node_id} at port {port}", folder / "log", command)
        self.node_id = node_id
        self.port = port
        # By listener name, for the cluster's other listeners.
        self.other_ports = other_ports
        self.folder = folder

    def use_command(self, command: Sequence[str | Path]) -> None:
        """Use this command from the next start on."""
        self._command = command

    def stop(self, within: float = _STOP_SECONDS) -> float:
        """Shut down in an orderly way: leadership moves away first, the log is closed."""
        return super().stop(within)

    def ask(self) -> ProbeResponse | None:
        """The broker's view of its cluster; None while it does not respond."""
        try:
            return ask(HOST, self.port)
        except TransportError:
            return None

    def try_ready(self) -> bool:
        """Whether it responds, is a member of the cluster and sees a controller."""
        view = self.ask()
        return view is not None and view.has_controller and self.node_id in view.node_ids

    def _check_ready(self) -> bool:
        if not self.is_running and _STILL_REGISTERED in log_tail(self.log_path):
            # ZooKeeper keeps the registration of a killed broker until its session ends.
            self.start()
            return False
        return super()._check_ready()


class KafkaCluster:
    """A cluster, for use in a `with` block, which stops it and deletes its folder at the end.

    A folder of a stopped cluster of the same size is started with its data.
    """

    def __init__(
        self,
        name: str,
        *,
        brokers: int = 1,
        port: int | None = None,
        ports: Sequence[int] = (),
        folder: Path | None = None,
        properties: Mapping[str, str] = MappingProxyType({}),
        listeners: Mapping[str, str] = MappingProxyType({}),
        advertised_ports: Mapping[str, int] = MappingProxyType({}),
        version: str | Release = KAFKA_VERSION,
        heap: str = "512m",
        jvm_args: Sequence[str] = SERVER_JVM_ARGS,
        keep: bool = False,
        detached: bool = False,
    ) -> None:
        """`port` is the first broker's, or `ports` are those of all; otherwise the OS chooses.

        `listeners` has the security protocols, by name, of listeners besides the plain one; their
        other settings are in `properties`. A cluster of one broker may advertise other ports than
        it listens on: `advertised_ports`, by listener name.
        """
        if not 1 <= brokers <= MOST_BROKERS:
            raise ConfigError("brokers", brokers, f"use 1 to {MOST_BROKERS}")
        self.name = name
        self.version = version
        self.brokers: list[Broker] = []
        self._node_ids = range(1, brokers + 1)
        self._wanted_ports = ports or ([port + at for at in range(brokers)] if port else ())
        self._folder = folder
        self._properties = properties
        self._listeners = listeners
        self._advertised_ports = advertised_ports
        self._heap = heap
        self._jvm_args = jvm_args
        self._keep = keep
        self._detached = detached
        self._ports: list[ReservedPort] = []
        self._zookeeper: ZooKeeper | None = None

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{HOST}:{broker.port}" for broker in self.brokers)

    def servers_of(self, listener: str) -> str:
        """Addresses of one of the other listeners."""
        return ",".join(f"{HOST}:{broker.other_ports[listener]}" for broker in self.brokers)

    @property
    def pids(self) -> list[int]:
        """The processes of the running brokers, followed by ZooKeeper's."""
        own = [broker.pid for broker in self.brokers if broker.is_running]
        has_zookeeper = self._zookeeper is not None and self._zookeeper.is_running
        return [*own, self._zookeeper.pid] if self._zookeeper and has_zookeeper else own

    @property
    def folder(self) -> Path:
        """The folder of data and logs; chosen at `start` if none was given."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix=f"sparkmirror-{self.name}-"))
        return self._folder

    def start(self) -> KafkaCluster:
        """Start every broker and return when the cluster is ready."""
        self.launch()
        self.wait_ready()
        return self

    def launch(self) -> None:
        """Start every broker without waiting for a response."""
        jars = kafka_jars(self.version)
        try:
            self.brokers = self._prepare(jars)
            if self._zookeeper is not None:
                self._zookeeper.start(detached=self._detached)
            for broker in self.brokers:
                broker.start(detached=self._detached)
        except BaseException:  # also Ctrl-C: no process is left behind
            self.stop()
            raise

    def wait_ready(self, within: float = READY_SECONDS) -> None:
        """Return once every broker responds and knows all others; else stop the cluster."""
        try:
            for broker in self.brokers:
                broker.wait_ready(within)
            wait_for(self._is_complete, within=within, describe=f"all of '{self.name}' complete")
        except BaseException:  # also Ctrl-C: no process is left behind
            self.stop()
            raise

    def stop(self) -> None:
        """Stop every broker; delete the cluster's files unless they are kept."""
        # No orderly shutdown is needed for data that is deleted anyway.
        within = _STOP_SECONDS if self._keep else 0.0
        stop_processes(self.brokers, within)
        if self._zookeeper is not None:
            self._zookeeper.kill()  # it writes every change at once
        self.release_ports()
        if not self._keep:
            self._delete_files()

    def release_ports(self) -> None:
        """Release the reserved ports; running brokers keep listening."""
        for port in self._ports:
            port.close()
        self._ports = []

    def __enter__(self) -> KafkaCluster:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _is_complete(self) -> bool:
        views = [broker.ask() for broker in self.brokers]
        return all(view and view.node_ids == tuple(self._node_ids) for view in views)

    def _prepare(self, jars: KafkaJars) -> list[Broker]:
        self._refuse_another_size()
        wanted: Sequence[int | None] = self._wanted_ports or [None] * len(self._node_ids)
        broker_ports = [self._reserve(port) for port in wanted]
        has_zookeeper = jars.release.needs_zookeeper
        if has_zookeeper:
            self._zookeeper = ZooKeeper(jars, self.folder, self._reserve(None))
        own_ports = [0 if has_zookeeper else self._reserve(None) for _ in self._node_ids]
        controllers = dict(zip(self._node_ids, own_ports, strict=True))
        cluster_id = _random_id()
        brokers = []
        for node_id, port in zip(self._node_ids, broker_ports, strict=True):
            folder = self.folder / f"broker-{node_id}"
            others = {name: self._reserve(None) for name in self._listeners}
            settings = self._role_properties(node_id, controllers) | self._broker_properties(
                {"PLAINTEXT": port, **others}, folder
            )
            if not has_zookeeper:
                settings["listeners"] += f",{_addresses({'CONTROLLER': controllers[node_id]})}"
                _format(jars, folder / "data", node_id, cluster_id)
            store_properties(folder / "server.properties", {**settings, **self._properties})
            brokers.append(Broker(node_id, port, folder, self._command(jars, folder), others))
        return brokers

    def _role_properties(self, node_id: int, controllers: Mapping[int, int]) -> dict[str, str]:
        """The broker's identity, and its controllers or ZooKeeper."""
        if self._zookeeper is not None:
            return {
                "broker.id": str(node_id),
                "zookeeper.connect": self._zookeeper.address,
                "zookeeper.connection.timeout.ms": CONNECT_MS,
                # A killed broker stays registered for 6 s: until then it cannot start again.
                "zookeeper.session.timeout.ms": "6000",
            }
        voters = (f"{node}@{HOST}:{port}" for node, port in controllers.items())
        return {
            "process.roles": "broker,controller",
            "node.id": str(node_id),
            "controller.quorum.voters": ",".join(voters),
            "controller.listener.names": "CONTROLLER",
        }

    def upgrade(self, broker: Broker, version: str) -> None:
        """Stop a broker and start it with the jars of another release, older or newer."""
        if broker.is_running:
            broker.stop()
        jars = kafka_jars(version)
        broker.use_command(self._command(jars, broker.folder))
        broker.start(detached=self._detached)
        broker.wait_ready()

    def _refuse_another_size(self) -> None:
        had = len(list(self.folder.glob("broker-*")))
        if had not in (0, len(self._node_ids)):
            reason = f"{self.folder} has a cluster of {had}"
            raise ConfigError("brokers", len(self._node_ids), reason, "use the same number")

    def _reserve(self, port: int | None) -> int:
        reserved = ReservedPort(port)
        self._ports.append(reserved)
        return reserved.number

    def _command(self, jars: KafkaJars, folder: Path) -> list[str | Path]:
        args = [folder / "server.properties"]
        return java_command(
            jars, folder, "kafka.Kafka", args, heap=self._heap, jvm_args=self._jvm_args
        )

    def _broker_properties(self, ports: Mapping[str, int], folder: Path) -> dict[str, str]:
        protocols = {"CONTROLLER": "PLAINTEXT", "PLAINTEXT": "PLAINTEXT", **self._listeners}
        advertised = {**ports, **self._advertised_ports}
        copies = str(min(MOST_BROKERS, len(self._node_ids)))
        in_sync = str(min(2, len(self._node_ids)))
        return {
            "listeners": _addresses(ports),
            "advertised.listeners": _addresses(advertised),
            "listener.security.protocol.map": ",".join(map(":".join, protocols.items())),
            "log.dirs": str(folder / "data"),
            "auto.create.topics.enable": "false",
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.replication.factor": copies,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": in_sync,
        }

    def _delete_files(self) -> None:
        if self._folder is None:
            return
        for name in (*(f"broker-{node_id}" for node_id in self._node_ids), ZOOKEEPER_FOLDER):
            shutil.rmtree(self._folder / name, ignore_errors=True)
        # Other files in the folder are not ours.
        if self._folder.is_dir() and not any(self._folder.iterdir()):
            self._folder.rmdir()


def _addresses(ports: Mapping[str, int]) -> str:
    return ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items())


def _random_id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def _format(jars: KafkaJars, data: Path, node_id: int, cluster_id: str) -> None:
    """Format the node as `kafka-storage.sh format` does, unless it has data."""
    if (data / "meta.properties").exists():
        return
    data.mkdir(parents=True, exist_ok=True)
    shutil.copy(jars.bootstrap_checkpoint, data / "bootstrap.checkpoint")
    identity = {"version": "1", "cluster.id": cluster_id, "node.id": str(node_id)}
    store_properties(data / "meta.properties", {**identity, "directory.id": _random_id()})
