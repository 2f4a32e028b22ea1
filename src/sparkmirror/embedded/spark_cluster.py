"""A standalone Spark cluster: master and workers as processes, from the pyspark package."""

from __future__ import annotations

import json
import secrets
import shutil
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

import psutil

from sparkmirror.embedded.java import QUICK_JVM_ARGS, store_properties
from sparkmirror.embedded.ports import HOST, ReservedPort
from sparkmirror.embedded.process import ManagedProcess, log_tail, stop_processes
from sparkmirror.errors import LocalProtocolError, MirrorError
from sparkmirror.retry import wait_for
from sparkmirror.spark import machine

READY_SECONDS = 90.0
_STOP_SECONDS = 10.0
_SECURITY_FILE = "security.properties"
_EXECUTOR_CLASS = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
# Loopback only, so no proxy of the environment may be used.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class SparkCluster:
    """A Spark master and its workers, for use in a `with` block.

    Executors are children of the worker that starts them; they and their Python processes end with
    it. Drivers connect to `master_url` with `driver_settings`: the cluster rejects connections
    without its secret and encrypts all traffic.
    """

    def __init__(
        self,
        workers: int = 2,
        *,
        cores: int = 2,
        memory: str = "1g",
        folder: Path | None = None,
    ) -> None:
        self._worker_count = workers
        self._cores = cores
        self._memory = memory
        self._named_folder = folder
        self._secret = secrets.token_hex(32)
        self._folder: Path | None = None
        self._ports: list[ReservedPort] = []
        self._master: ManagedProcess | None = None
        self._workers: list[ManagedProcess] = []

    @property
    def master_url(self) -> str:
        return f"spark://{HOST}:{self._port(0)}"

    @property
    def driver_settings(self) -> dict[str, str]:
        """Settings that a driver needs, besides the address."""
        return {"spark.authenticate.secret": self._secret}

    @property
    def web_url(self) -> str:
        """Address of the master's web page."""
        return f"http://{HOST}:{self._port(1)}"

    @property
    def driver_environment(self) -> dict[str, str]:
        """Environment that a driver needs: it tells executors which Python to run."""
        return {"PYSPARK_PYTHON": sys.executable}

    @property
    def folder(self) -> Path | None:
        """The folder of logs and of the executors' files; None before the start."""
        return self._folder

    @property
    def pids(self) -> list[int]:
        """The ids of the processes of master and workers."""
        return [each.pid for each in self._processes()]

    @property
    def worker_pids(self) -> list[int]:
        return [worker.pid for worker in self._workers if worker.is_running]

    @property
    def executor_pids(self) -> list[int]:
        """The ids of the running executors of all workers and applications."""
        pids = []
        for worker_pid in self.worker_pids:
            children = psutil.Process(worker_pid).children(recursive=True)
            pids += [child.pid for child in children if _is_executor(child)]
        return pids

    def start(self) -> SparkCluster:
        """Start master and workers and return when every worker has registered."""
        self._folder = self._named_folder or Path(tempfile.mkdtemp(prefix="sparkmirror-spark-"))
        try:
            self._ports = [ReservedPort(), ReservedPort()]
            self._store_security(self._folder / _SECURITY_FILE)
            self._master = self._start_master(self._folder)
            for index in range(self._worker_count):
                self._workers.append(self._start_worker(self._folder, index + 1))
            wait_for(self._is_complete, within=READY_SECONDS, describe=self._describe)
        except BaseException:  # also Ctrl-C: no process is left behind
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop everything; delete the folder unless the caller named it."""
        # Workers first: a worker without a master keeps reconnecting.
        stop_processes(self._workers, _STOP_SECONDS)
        if self._master is not None:
            self._master.stop(_STOP_SECONDS)
        for port in self._ports:
            port.close()
        self._ports = []
        if self._folder is not None and self._named_folder is None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def kill_worker(self, index: int) -> None:
        """Kill one worker and its executors, like the loss of a machine."""
        self._workers[index].kill()

    def __enter__(self) -> SparkCluster:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _port(self, index: int) -> int:
        if not self._ports:
            raise LocalProtocolError("the Spark cluster was not started")
        return self._ports[index].number

    def _store_security(self, path: Path) -> None:
        """Write a file, because every user can see command lines."""
        path.touch(mode=0o600)
        settings = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}
        store_properties(path, settings | self.driver_settings)

    def _processes(self) -> list[ManagedProcess]:
        return ([] if self._master is None else [self._master]) + self._workers

    def _start_master(self, folder: Path) -> ManagedProcess:
        where = ["--host", HOST, "--port", str(self._port(0)), "--webui-port", str(self._port(1))]
        where += ["--properties-file", str(folder / _SECURITY_FILE)]
        return self._start("org.apache.spark.deploy.master.Master", where, folder / "master.log")

    def _start_worker(self, folder: Path, number: int) -> ManagedProcess:
        args = ["--host", HOST, "--webui-port", "0", "--cores", str(self._cores)]
        args += ["--memory", self._memory, "--work-dir", str(folder / f"worker-{number}")]
        args += ["--properties-file", str(folder / _SECURITY_FILE)]
        log_path = folder / f"worker-{number}.log"
        return self._start(
            "org.apache.spark.deploy.worker.Worker", [*args, self.master_url], log_path
        )

    def _start(self, main_class: str, args: list[str], log_path: Path) -> ManagedProcess:
        java = machine.java_program()
        home = machine.pyspark_folder()
        environment = {
            "SPARK_HOME": str(home),
            "JAVA_HOME": str(java.resolve().parent.parent),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_DAEMON_MEMORY": "256m",
            # Master and workers only coordinate; executors have their own options.
            "SPARK_DAEMON_JAVA_OPTS": " ".join(QUICK_JVM_ARGS),
            "SPARK_LAUNCHER_OPTS": " ".join(QUICK_JVM_ARGS),
        }
        command: list[str | Path] = [home / "bin" / "spark-class", main_class, *args]
        return ManagedProcess(main_class, log_path, command, environment=environment).start()

    def _is_complete(self) -> bool:
        if not all(each.is_running for each in self._processes()):
            raise MirrorError(f"start a Spark cluster: a process ended; {self._describe()}")
        return self.alive_workers() == self._worker_count

    def alive_workers(self) -> int:
        """How many workers the master counts as alive; 0 while it does not respond."""
        try:
            with _opener.open(f"{self.web_url}/json/", timeout=5) as response:
                state: dict[str, Any] = json.load(response)
        except (OSError, ValueError):
            # While it starts, its web server returns a page that is not JSON.
            return 0
        return int(state["aliveworkers"])

    def _describe(self) -> str:
        logs = sorted(self._folder.glob("*.log")) if self._folder else []
        tails = "\n".join(f"{log.name}:\n{log_tail(log)}" for log in logs)
        return f"{self._worker_count} Spark workers registered; logs end:\n{tails}"


def _is_executor(process: psutil.Process) -> bool:
    try:
        return _EXECUTOR_CLASS in process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False
