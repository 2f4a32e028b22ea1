"""A flow on a real standalone Spark cluster, and what happens when executors die or vanish.

One mirror for all tests of this file, which run in this order; each has topics of its own. It reads
with TLS and a login, and its executors may not open the stores: these come from the worker.
"""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from sparkmirror.demo.compare import compare_topics
from sparkmirror.demo.seed import TOPICS, SeedRow, seed_topics
from sparkmirror.embedded import KafkaCluster, SparkCluster
from tests.certificates import PASSWORD as STORE_PASSWORD
from tests.clusters import create_topic, unique_name, wait_for
from tests.kafka.mirror_process import Mirror
from tests.kafka.records import (
    Feeder,
    count_seams,
    jumps_back,
    stored_offsets,
    values,
    wait_until_copied,
)
from tests.parity.arriving import expected_ends, wait_for_ends
from tests.secrets import places
from tests.secure_cluster import (
    CLIENT_LOGINS,
    USER,
    USER_PASSWORD,
    SecureCluster,
    add_scram_user,
)
from tests.spark_cluster.executors import TASKS, copying, on_cluster, wait_for_tasks

pytestmark = pytest.mark.kafka

PREFIX = unique_name("standalone")
MECHANISM, PASSWORD = "SCRAM-SHA-512", "planted-executor-1"
# Compaction takes the log cleaner up to 15 s; the parity test has it.
LEFT_OUT = ("profiles", "bulk", "large")
PARTITIONS = 4
PER_SECOND = 400
# Two or three on a machine that is not busy with other tests.
SECONDS = 40.0


# Python runs this first in each process of an executor.
WITHOUT_STORES = """
import sys

def refuse(event, arguments):
    if event == "open" and str(arguments[0]).endswith((".p12", ".jks")):
        raise PermissionError(13, "an executor has no such file", arguments[0])

sys.addaudithook(refuse)
open(__file__ + ".ran", "w").close()
"""


def secure_source(cluster: SecureCluster) -> dict[str, str]:
    """How the mirror reads: over TLS, with a login and a client certificate."""
    add_scram_user(cluster.kafka, "executor", PASSWORD)
    login = CLIENT_LOGINS[MECHANISM].replace(USER_PASSWORD, PASSWORD).replace(USER, "executor")
    client = cluster.client("SASL_SSL", MECHANISM) | cluster.own_key()
    client["sasl.jaas.config"] = login
    return {f"SOURCE.{key}": value for key, value in client.items()}


@pytest.fixture(scope="module")
def mirror(
    secure_cluster: SecureCluster,
    target_cluster: KafkaCluster,
    spark_cluster: SparkCluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Mirror]:
    """A flow with a partition for each task, on two executors; stops well after all tests."""
    source = secure_cluster.kafka
    create_topic(source, f"{PREFIX}-first", partitions=TASKS)
    folder = tmp_path_factory.mktemp("standalone")
    (folder / "python").mkdir()
    (folder / "python" / "sitecustomize.py").write_text(WITHOUT_STORES)
    settings = on_cluster(spark_cluster) | secure_source(secure_cluster)
    settings |= {
        "SOURCE.consumer.isolation.level": "read_committed",
        "spark.executorEnv.PYTHONPATH": str(folder / "python"),
    }
    with Mirror(folder, source, target_cluster, f"{PREFIX}-.*", settings) as running:
        wait_for_tasks(spark_cluster, TASKS)
        yield running
        running.stop()


def demo_rows() -> list[SeedRow]:
    """The demo's topics under names of our own."""
    kept = [row for row in TOPICS if row.name not in LEFT_OUT]
    return [dataclasses.replace(row, name=f"{PREFIX}-{row.name}") for row in kept]


def by_tasks(executors: dict[int, int]) -> tuple[int, int]:
    """The one of two executors that has more tasks, and the other, which has a free slot."""
    assert len(executors) == 2, executors
    first, second = sorted(executors, key=lambda pid: executors[pid], reverse=True)
    return first, second


def wait_for_last(mirror: Mirror, topic: str) -> None:
    """What the target has twice counts as well: so look at the last record, not at the count."""
    wait_until_copied(mirror, topic, PARTITIONS)
    wait_for(
        lambda: (
            last_values(mirror.target, mirror.remote(topic)) == last_values(mirror.source, topic)
        ),
        within=SECONDS,
        describe=f"the same records at the ends of {topic}",
    )


def last_values(cluster: KafkaCluster, topic: str) -> list[bytes]:
    return [values(cluster, topic, at)[-1] for at in range(PARTITIONS)]


@contextmanager
def paused(*processes: psutil.Process) -> Iterator[None]:
    """Processes that do not respond, but whose connections stay open."""
    for process in processes:
        process.suspend()
    try:
        yield
    finally:
        for process in processes:
            if process.is_running():
                process.resume()


def writes_to(cluster: KafkaCluster, process: psutil.Process) -> bool:
    ports = {connection.raddr.port for connection in process.net_connections() if connection.raddr}
    return not ports.isdisjoint(broker.port for broker in cluster.brokers)


def test_topics_of_the_demo_are_copied_by_two_executors(
    mirror: Mirror, spark_cluster: SparkCluster
) -> None:
    rows = demo_rows()
    source, target = mirror.source.bootstrap_servers, mirror.target.bootstrap_servers
    seeded = seed_topics(source, rows)
    ends = expected_ends(seeded, mirror.remote)
    wait_for_ends(target, ends, within=2 * SECONDS, describe=mirror.log_end)
    results = compare_topics(source, target, {row.name: mirror.remote(row.name) for row in rows})
    assert [result for result in results if not result.same] == []
    executors = wait_for_tasks(spark_cluster, TASKS)
    assert len(executors) == 2
    assert min(executors.values()) >= 1
    assert (mirror.file.parent / "python" / "sitecustomize.py.ran").exists()


def test_secrets_are_on_no_command_line_and_in_no_file(
    mirror: Mirror, spark_cluster: SparkCluster
) -> None:
    [spark_secret] = spark_cluster.driver_settings.values()
    roots = [psutil.Process(pid) for pid in spark_cluster.pids]
    lines = list(places.command_lines([*places.processes(roots), *mirror.processes()]))
    executors = [text for _, text in lines if "CoarseGrainedExecutorBackend" in text]
    assert len(executors) == 2
    for text in executors:
        assert "-Dspark.authenticate=true" in text
        assert "-Dspark.network.crypto.enabled=true" in text
    assert spark_cluster.folder is not None
    files = [
        place
        for place in places.files(spark_cluster.folder)
        if not place[0].endswith(".properties")
    ]
    assert any(name.endswith("stderr") for name, _ in files)
    found = [*lines, *files, ("log", mirror.log())]
    assert places.found_in(found, [spark_secret, PASSWORD, STORE_PASSWORD]) == []


def test_cluster_with_a_secret_wants_it(spark_cluster: SparkCluster) -> None:
    code = (
        "from sparkmirror.spark.session import SparkEngine\n"
        f"SparkEngine({{'spark.master': '{spark_cluster.master_url}'}}, 1)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 1
    assert "spark.authenticate.secret: is required and not set" in ended.stderr.splitlines()[-1]


def test_tasks_of_a_killed_executor_run_again_and_nothing_is_missing(
    mirror: Mirror, spark_cluster: SparkCluster
) -> None:
    topic = create_topic(mirror.source, f"{PREFIX}-killed", partitions=PARTITIONS)
    with Feeder(mirror.source, topic, PARTITIONS, per_second=PER_SECOND):
        before = wait_for_tasks(spark_cluster, TASKS)
        wait_until_copied(mirror, topic, PARTITIONS)
        wait_for(
            lambda: len(stored_offsets(mirror, topic)) == PARTITIONS,
            within=SECONDS,
            describe="a stored position of each partition",
        )
        stored = stored_offsets(mirror, topic)
        killed, other = by_tasks(before)
        psutil.Process(killed).kill()
        # It has a free slot, so no task waits for another executor.
        wait_for(
            lambda: len(copying(other)) > before[other],
            within=SECONDS,
            describe=lambda: f"a task more in {other}, {before}; {mirror.log_end()}",
        )
        wait_for_tasks(spark_cluster, TASKS)
    wait_for_last(mirror, topic)
    log = mirror.log()
    assert log.count("FAILED: Lost task") == before[killed]
    assert log.count("Command exited with code 137; starting it again in 1 s") == before[killed]
    # Each partition of the killed tasks began once more, behind what was stored before the kill;
    # the others never did.
    jumps = {at: jumps_back(mirror, topic, at) for at in range(PARTITIONS)}
    assert all(len(each) <= 1 for each in jumps.values()), jumps
    assert all(again > stored[at] for at, each in jumps.items() for again in each), (jumps, stored)


@pytest.mark.long
def test_attempt_behind_a_broken_network_is_cut_off_by_the_next(
    mirror: Mirror, spark_cluster: SparkCluster
) -> None:
    topic = create_topic(mirror.source, f"{PREFIX}-vanished", partitions=PARTITIONS)
    with Feeder(mirror.source, topic, PARTITIONS, per_second=PER_SECOND):
        before = wait_for_tasks(spark_cluster, TASKS)
        wait_until_copied(mirror, topic, PARTITIONS)
        lost, other = by_tasks(before)
        zombies = copying(lost)
        executor = psutil.Process(lost)
        worker = executor.parent()
        assert worker is not None
        # Spark hears nothing of the executor and cannot end it; its Python processes continue.
        with paused(executor, worker):
            mirror.wait_for_log("heartbeat timed out", within=SECONDS)
            mirror.wait_for_log("the older attempt is cut off", within=SECONDS)
            wait_for(
                lambda: not all(writes_to(mirror.target, zombie) for zombie in zombies),
                within=SECONDS,
                describe="the older attempt has hung up",
            )
            assert len(copying(other)) > before[other]
        wait_for_tasks(spark_cluster, TASKS)
    wait_for_last(mirror, topic)
    seams = [count_seams(mirror, topic, at) for at in range(PARTITIONS)]
    # The older attempt may have stored its last positions in time; then nothing is copied twice.
    assert all(jumps <= 1 for jumps, _ in seams), seams
