"""Spark's session for the worker: the user's `spark.*` keys, and defaults for long-running tasks.

Runs on: worker (the Spark driver). Everything that pyspark takes from the process around it
(environment variables, signal handlers, the console) is handled here.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import IO, Any

import pyspark
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from sparkmirror.errors import ConfigError, MirrorError, MissingPart, TransportError
from sparkmirror.spark.class_archive import ClassArchive
from sparkmirror.spark.copy.copy_task import run_copy_task
from sparkmirror.spark.jvm_figures import JvmFigures, read_jvm
from sparkmirror.spark.link.task_token import TaskToken
from sparkmirror.spark.spark_security import (
    SECRET,
    STANDALONE,
    check_security,
    is_for_command_line,
    no_secret,
    not_admitted,
    redaction,
    secure_defaults,
)

log = logging.getLogger(__name__)

MASTER, LOCAL = "spark.master", "local"
DYNAMIC = "spark.dynamicAllocation.enabled"
PYTHON = "spark.pyspark.python"
# Ours, among Spark's: the port on which the worker listens for tasks; 0 means any.
LINK_PORT = "spark.sparkmirror.link.port"
JVM_OPTIONS = "spark.driver.extraJavaOptions"
# In local mode a slot is a waiting thread: one for every possible task, and these to spare.
SPARE_SLOTS = 4

DEFAULTS = {
    "spark.app.name": "sparkmirror",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # A long-running task looks slow to speculation, which would run it twice.
    "spark.speculation": "false",
    # Executors that look idle hold running tasks; Spark must not remove them.
    DYNAMIC: "false",
    # The worker restarts what fails, with back-off, fresh positions and the reason in its status.
    # Spark itself runs a task again only when its machine is gone, which does not count.
    "spark.task.maxFailures": "1",
    "spark.python.worker.reuse": "true",
    "spark.driver.memory": "512m",
}
LOCAL_DEFAULTS = {
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
    # Spark would take one thread for each slot, of which there are hundreds.
    "spark.rpc.netty.dispatcher.numThreads": "4",
}
# Only for the Python that runs this program: another one may have another pyspark, or none, and
# then needs the copy in Spark's folder, which this module leaves out.
OWN_PYTHON_DEFAULTS = {"spark.python.daemon.module": "sparkmirror.spark.task_daemon"}
CLUSTER_DEFAULTS = {
    # A machine that vanished is missed after 15 s; Spark's own default is two minutes and more.
    "spark.executor.heartbeatInterval": "2s",
    "spark.storage.blockManagerHeartbeatTimeoutMs": "15s",
    "spark.network.timeoutInterval": "2s",
    # Tasks stay where they start: wait for all executors, so that the first does not get them all.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "10s",
}
# The driver's JVM only keeps the books: a small heap, one collector thread, no optimising compiler.
SMALL_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"
# Printed by every JVM of Spark at its start; useless to users.
NOISE = "WARNING: Using incubator modules:"
STACK_FRAME = "\tat "
# Printed when the other side has a different secret, or none; Spark keeps trying for a minute.
REFUSED = "Exception while bootstrapping client"
# What any call to a JVM that has ended may raise.
JVM_GONE = (Py4JError, OSError)
MASTER_WORDS = re.compile(r"local(\[.+])?$|yarn$|spark://.|k8s://.")
MASTER_SECONDS = 5.0
# The job group of `warm_up`.
WARM_UP = "warm-up"
# How Spark's application ids begin if a standalone cluster has given none.
NOT_ADMITTED = "spark-application-"
# Every task asks whether Spark is alive; Spark itself is asked this often.
ALIVE_SECONDS = 1.0


# While a session ends, Spark logs errors of jobs that end with it; these are not shown.
_is_ending = threading.Event()


class SparkEngine:
    """The one Spark session of a worker process."""

    def __init__(self, settings: Mapping[str, str], slots_wanted: int) -> None:
        _is_ending.clear()
        self._settings = complete_settings(settings, slots_wanted)
        self.is_local = self.master.startswith(LOCAL)
        # Elsewhere SPARK_HOME may name another Spark, whose classes are not those of pyspark.
        self._classes = ClassArchive() if self.is_local else None
        self._link_port = _parse_port(self._settings.get(LINK_PORT, "0"))
        _check_master(self.master)
        if not self.is_local:
            check_security(self._settings, self.master)
        _set_environment(self._settings, self.is_local)
        conf = SparkConf(loadDefaults=False).setAll(list(self._settings.items()))
        if self._classes is not None:
            options = self._settings[JVM_OPTIONS]
            conf.set(JVM_OPTIONS, f"{self._classes.options(options)} {options}".strip())
        with _own_signal_handlers():
            self._context = _start_context(conf, self.master)
        if self._context.applicationId.startswith(NOT_ADMITTED):
            self._context.stop()
            raise not_admitted(self._settings, self.master)
        self._seen_alive = time.monotonic()
        self._jvm = SparkContext._gateway.proc  # noqa: SLF001
        if self._classes is not None:
            self._classes.make_later()

    @property
    def master(self) -> str:
        """The cluster that runs the tasks."""
        return self._settings[MASTER]

    @property
    def driver_host(self) -> str:
        """The address under which executors reach this process."""
        if self.is_local:
            return "127.0.0.1"
        return str(self._context.getConf().get("spark.driver.host"))

    @property
    def link_address(self) -> tuple[str, int]:
        """Where tasks connect: the address to listen on, and the port."""
        if self.is_local:
            return "127.0.0.1", self._link_port
        everywhere = "0.0.0.0"  # noqa: S104 - executors are on other machines, and must log in
        return self._settings.get("spark.driver.bindAddress", everywhere), self._link_port

    @property
    def has_dynamic_executors(self) -> bool:
        """Whether Spark requests executors as needed: then slots exist only with tasks."""
        return self._settings.get(DYNAMIC) == "true"

    @property
    def slots(self) -> int:
        """How many tasks can run at once, on the executors that there are now."""
        try:
            java = self._java_context()
            profile = java.resourceProfileManager().defaultResourceProfile()
            return int(java.maxNumConcurrentTasks(profile))
        except JVM_GONE as error:  # `check_alive` reports it
            log.debug("no slots: %s", error)
            return 0

    def jvm_figures(self) -> JvmFigures:
        """What the driver's JVM says of itself. MirrorError: it is gone."""
        try:
            known = int(self._java_context().getExecutorMemoryStatus().size())
            return read_jvm(self._context._jvm, known if self.is_local else known - 1)  # noqa: SLF001
        except (*JVM_GONE, AttributeError) as error:  # a session that was stopped has no context
            raise MirrorError(f"Spark's JVM does not respond: {error}") from error

    def check_alive(self) -> None:
        """Raise MirrorError if Spark has ended by itself: this process cannot restart it."""
        now = time.monotonic()
        if now - self._seen_alive < ALIVE_SECONDS:
            return
        self._seen_alive = now
        try:
            if not self._java_context().isStopped():
                return
            why = "its master has removed the application"
        except JVM_GONE:
            why = f"its JVM has ended, exit code {self._jvm.poll()}"
        raise MirrorError(f"Spark ({self.master}) has stopped: {why}; restart sparkmirror")

    def describe_end(self) -> str:
        """Whether Spark's JVM still runs: explains a task that ended without a report."""
        code = None if self._jvm is None else self._jvm.poll()
        if code is None:
            return "Spark's JVM runs"
        return f"Spark's JVM has ended with exit code {code}"

    def warm_up(self) -> None:
        """In local mode, run an empty job: Spark takes a second to load what the first job needs.

        On a cluster, executors start with the first task, and a job would wait for them.
        """
        if not self.is_local:
            return
        self._context.setJobGroup(WARM_UP, "Load what copy tasks need")
        try:
            self._context.parallelize([0], 1).mapPartitions(iter).collect()
        except JVM_GONE as error:  # tasks will fail in the same way, and their states report why
            log.debug("the first job failed: %s", error)

    def run_task(self, token: TaskToken, description: str) -> str:
        """Run one copy task to its end; raises what Spark raises. Blocks: one thread per task."""
        self._context.setJobGroup(token.task, description, interruptOnCancel=False)
        rows: Iterable[str] = (
            self._context.parallelize([token], 1).mapPartitions(run_copy_task).collect()
        )
        return next(iter(rows), "ended")

    def cancel_task(self, task: str) -> None:
        """Kill a task that does not end by itself, or that has not started."""
        try:
            self._context.cancelJobGroup(task)
        except JVM_GONE as error:
            log.debug("[%s] ended with Spark: %s", task, error)

    def stop(self) -> None:
        """End the session; tasks must have ended."""
        _is_ending.set()
        if self._classes is not None:
            self._classes.stop()
        try:
            self._context.stop()
        except JVM_GONE as error:
            log.debug("Spark had ended before: %s", error)

    def _java_context(self) -> Any:
        return self._context._jsc.sc()  # noqa: SLF001


def complete_settings(settings: Mapping[str, str], slots_wanted: int) -> dict[str, str]:
    """The user's settings over our defaults."""
    master = settings.get(MASTER, f"local[{slots_wanted + SPARE_SLOTS}]")
    is_local = master.startswith(LOCAL)
    own = LOCAL_DEFAULTS if is_local else CLUSTER_DEFAULTS | secure_defaults(settings)
    if is_local and PYTHON not in settings:
        own = own | OWN_PYTHON_DEFAULTS
    options = f"{SMALL_JVM} {_quiet_log()} {settings.get(JVM_OPTIONS, '')}".strip()
    hidden = redaction(settings)
    return {**DEFAULTS, **own, **hidden, **settings, MASTER: master, JVM_OPTIONS: options}


def _set_environment(settings: Mapping[str, str], is_local: bool) -> None:
    """Which Python and which Spark: pyspark takes both from environment variables only.

    In local mode the ones that run this program, regardless of the variables, which may be for
    another Spark on this machine.
    """
    python = settings.get(PYTHON)
    if is_local:
        os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
        os.environ["PYSPARK_PYTHON"] = python or sys.executable
        # Spark starts its Python as `python -m ...`, which would look for modules in whichever
        # folder the worker was started: a numbers.py there would take the place of Python's own.
        os.environ["PYTHONSAFEPATH"] = "1"
    elif python:
        os.environ["PYSPARK_PYTHON"] = python
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


@contextmanager
def _own_signal_handlers() -> Iterator[None]:
    """pyspark would handle Ctrl-C by cancelling all jobs; here it means: commit and stop."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _check_master(master: str) -> None:
    """Check that Spark knows the word and a master responds: Spark itself would try for a minute.

    Raises:
        ConfigError: no such kind of cluster.
        TransportError: none of the standalone cluster's masters can be reached.
    """
    if MASTER_WORDS.match(master) is None:
        remedy = "use local[N], spark://host:port, k8s://https://host:port or yarn"
        raise ConfigError(MASTER, master, "Spark does not know this kind of cluster", remedy)
    errors = [_call(address) for address in standalone_addresses(master)]
    if errors and None not in errors:
        raise TransportError(
            f"reach Spark's master {master}: {errors[0]}; check {MASTER} and that it is running"
        )


def standalone_addresses(master: str) -> list[tuple[str, int]]:
    """Host and port of each master in a spark:// address; those of other kinds are not known."""
    if not master.startswith(STANDALONE):
        return []
    addresses = []
    for part in master.removeprefix(STANDALONE).split(","):
        host, _, port = part.rpartition(":")
        if not host or not port.isdecimal():
            reason = f"'{part}' is not host:port"
            raise ConfigError(MASTER, master, reason, "write spark://host:7077")
        addresses.append((host, int(port)))
    return addresses


def _call(address: tuple[str, int]) -> OSError | None:
    try:
        socket.create_connection(address, MASTER_SECONDS).close()
    except OSError as error:
        return error
    return None


def _start_context(conf: SparkConf, master: str) -> SparkContext:
    try:
        # A JVM that an earlier session of this process has started is used again.
        gateway = SparkContext._gateway or _start_jvm(conf)  # noqa: SLF001
        return SparkContext(conf=conf, gateway=gateway)
    except Py4JJavaError as error:
        reason = str(error.java_exception.getMessage()).partition("\n")[0]
        if SECRET in reason:
            raise no_secret(master) from error
        text = f"start Spark on {master}: {reason}"
        raise ConfigError("", None, text, "check the spark.* keys") from error


def _start_jvm(conf: SparkConf) -> Any:
    """Start Spark's JVM, with its output in the worker's log instead of on the console.

    It has its own session: SIGTERM to the worker's process group, as `timeout` and supervisors send
    it, would end the JVM and its tasks before they have stored their positions. It still ends with
    this process, at the end of its standard input.
    """
    reader, writer = os.pipe()
    lines: list[str] = []
    relay = threading.Thread(
        target=_relay, args=(os.fdopen(reader, "rb"), lines), name="spark-stderr", daemon=True
    )
    relay.start()
    with os.fdopen(writer, "wb") as stderr:
        try:
            return launch_gateway(_shown(conf), {"stderr": stderr, "start_new_session": True})
        except (PySparkRuntimeError, OSError) as error:
            failure = error
    # No other process holds the pipe's other end: the relay ends.
    relay.join(5.0)
    raise MissingPart(
        f"start Spark's JVM: {'; '.join(lines) or failure}; Spark needs Java 17 or newer, as "
        "JAVA_HOME or on the PATH"
    ) from failure


def _shown(conf: SparkConf) -> SparkConf:
    """What pyspark may write on a command line; the context gets the rest from us."""
    public = [(key, value) for key, value in conf.getAll() if is_for_command_line(key, value)]
    return SparkConf(loadDefaults=False).setAll(public)


def _relay(stream: IO[bytes], lines: list[str]) -> None:
    with stream:
        for line in stream:
            text = line.decode(errors="replace").rstrip()
            if text.startswith(STACK_FRAME):
                log.debug("Spark: %s", text)
            elif text and not text.startswith(NOISE):
                lines.append(text)
                log.log(
                    logging.DEBUG if _is_ending.is_set() else logging.WARNING, "Spark: %s", text
                )
                if REFUSED in text:
                    log.warning(
                        "Spark: check that the cluster has a secret and that %s matches it", SECRET
                    )


def _parse_port(text: str) -> int:
    if text.isdecimal() and int(text) < 1 << 16:
        return int(text)
    raise ConfigError(LINK_PORT, text, "not a port", "use 0 to 65535; 0 means any free port")


def _quiet_log() -> str:
    """Spark's own log: errors only. A later option of the user replaces it."""
    path = Path(str(resources.files("sparkmirror.spark") / "log4j2.properties"))
    return f"-Dlog4j2.configurationFile={path.as_uri()}"
