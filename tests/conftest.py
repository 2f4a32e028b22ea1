"""Fixtures for all tests, and the check that no test leaves a process behind."""

from __future__ import annotations

import logging
import os
import signal
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import settings

from sparkmirror.config import masking
from sparkmirror.config.patterns.name_patterns import close_process
from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.kafka_jars import kafka_jars
from sparkmirror.embedded.process import end_processes, wait_gone
from tests.clusters import start_cluster
from tests.secure_cluster import SecureCluster, start_secure_cluster
from tests.spark_classes import make_spark_archive, use_spark_archive

_SESSION_VARIABLE = "SPARKMIRROR_TEST_SESSION"
_GRACE_SECONDS = 20.0

# The same examples on every run; machines that run several brokers are too slow for deadlines.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

# Processes that run tests side by side ignore Ctrl-C, and what they start would ignore it too.
signal.signal(signal.SIGINT, signal.default_int_handler)

use_spark_archive()


def _prepare() -> None:
    kafka_jars()
    make_spark_archive()


# On a new machine the brokers' jars are fetched while tests are collected and those that need no
# broker run. Whoever needs them waits for the lock; if it fails, they try themselves and say why.
_preparing = threading.Thread(target=_prepare, name="fetching jars")


def pytest_sessionstart(session: pytest.Session) -> None:
    """In the process that deals out the tests; those that run them are told by it what to run."""
    deals_out = getattr(session.config.option, "numprocesses", None)
    if deals_out and not session.config.option.collectonly:
        _preparing.start()


# Of those with brokers the first: none of them is to run alone when all others have ended.
LONGEST = (
    "kafka/releases/test_kraft_releases.py",
    "kafka/releases/test_zookeeper_releases.py",
    "deploy/test_container.py",
    "worker_cluster/test_takeover.py",
    "users/test_connect_mode.py",
    "worker_cluster/test_one_worker.py",
    "kafka/test_three_brokers.py",
    "mm2_suite/test_offset_translation.py",
    "spark_cluster/test_standalone.py",
    "parity/test_same_input.py",
    "failover/test_runbook.py",
    "handover/test_handover.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that need no broker first: meanwhile the jars are fetched."""
    with_brokers = {item.path for item in items if item.get_closest_marker("kafka")}

    def rank(item: pytest.Item) -> int:
        if item.path not in with_brokers:
            return 0
        name = item.path.relative_to(Path(__file__).parent).as_posix()
        return 1 + (LONGEST.index(name) if name in LONGEST else len(LONGEST))

    items.sort(key=rank)


def pytest_sessionfinish() -> None:
    """Nothing is left behind."""
    if _preparing.ident is not None:
        _preparing.join()


@pytest.fixture(scope="session")
def source_cluster() -> Iterator[KafkaCluster]:
    """One broker to copy from, shared by the session."""
    with start_cluster("source") as cluster:
        yield cluster


@pytest.fixture(scope="session")
def target_cluster() -> Iterator[KafkaCluster]:
    """One broker to copy to, shared by the session."""
    with start_cluster("target") as cluster:
        yield cluster


@pytest.fixture(scope="session")
def secure_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureCluster]:
    """One broker with TLS and SASL listeners, shared by the session."""
    with start_secure_cluster(tmp_path_factory.mktemp("certificates")) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def log_is_whole() -> Iterator[None]:
    """Undo what others did to our loggers: a command sets a level, import-linter turns them off."""
    ours = logging.getLogger("sparkmirror")
    level = ours.level
    for name, logger in logging.root.manager.loggerDict.items():
        if name.startswith("sparkmirror") and isinstance(logger, logging.Logger):
            logger.disabled = False
            if logger is not ours:
                logger.setLevel(logging.NOTSET)
    yield
    ours.setLevel(level)


@pytest.fixture(autouse=True)
def no_word_of_another_test_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test gave out as a secret is a common word in the next one."""
    monkeypatch.setattr(masking, "_known", masking._Known())


@pytest.fixture(scope="session", autouse=True)
def no_process_is_left_behind() -> Iterator[None]:
    """Fail the run if a Java or Python process that a test started outlives the session.

    Children inherit a variable, so that even those whose parent has died are found.
    """
    session = uuid.uuid4().hex
    os.environ[_SESSION_VARIABLE] = session
    yield
    close_process()
    left = wait_gone(_processes_of(session), _GRACE_SECONDS)
    descriptions = [f"{process.pid}: {_command(process)}" for process in left]
    end_processes(left)
    assert not descriptions, f"tests left processes running: {descriptions}"


def _processes_of(session: str) -> list[psutil.Process]:
    myself = psutil.Process()
    spared = {myself.pid} | {process.pid for process in _spark_gateway(myself)}
    return [
        process
        for process in psutil.process_iter()
        if process.pid not in spared and _belongs_to(process, session)
    ]


def _belongs_to(process: psutil.Process, session: str) -> bool:
    try:
        marked = process.environ().get(_SESSION_VARIABLE) == session
        return marked and process.name().startswith(("java", "python"))
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        return False


def _spark_gateway(myself: psutil.Process) -> list[psutil.Process]:
    """pyspark's own JVM: it lives until this process closes its pipe by ending."""
    found: list[psutil.Process] = []
    for child in myself.children():
        if "pyspark-shell" in _command(child):
            found += [child, *child.children(recursive=True)]
    return found


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return ""
