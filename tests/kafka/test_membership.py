"""Workers of one group on a real broker: one leads, and never two."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.connect.group.member_lease import LEASE_MARGIN_SECONDS
from sparkmirror.connect.group.worker_group_member import STOP_SECONDS, WorkerGroupMember
from sparkmirror.connect.storage.config_backing_store import KafkaConfigBackingStore
from sparkmirror.connect.storage.storage_topics import StorageTopic
from sparkmirror.embedded import KafkaCluster
from sparkmirror.spark.link.lease import boot_clock
from sparkmirror.wire.produce.transactional_writer import FencedError
from tests.clusters import create_topic, start_cluster, unique_name, wait_for
from tests.group_members import member

pytestmark = pytest.mark.kafka

# Connect's own default.
SESSION_MS = 10_000


class Worker(WorkerGroupMember):
    """A member whose thread can be frozen, as SIGSTOP does it to a whole process."""

    def __init__(self, cluster: KafkaCluster, group: str, name: str) -> None:
        self._may_run = threading.Event()
        self._may_run.set()
        client = ClientConfig("b", tuple(cluster.bootstrap_servers.split(",")))
        super().__init__(
            client,
            group,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=500,
            rebalance_timeout_ms=60000,
            own_url=f"http://{name}:8083",
            clock=self._time,
        )

    def freeze(self) -> None:
        self._may_run.clear()

    def thaw(self) -> None:
        self._may_run.set()

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        self.thaw()
        super().stop(seconds)

    def _time(self) -> float:
        if threading.current_thread() is self._thread:
            self._may_run.wait()
        return boot_clock()


class Watch:
    """Looks at all workers a hundred times a second: who leads, since when, and whether two do."""

    def __init__(self, *workers: Worker) -> None:
        self.most = 0
        # Whoever was seen not to lead.
        self.without: set[Worker] = set()
        self._workers = workers
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._ended.wait(0.01):
            leading = [worker for worker in self._workers if worker.is_leader]
            # Looking takes its time on a busy machine: what counts is who leads still.
            self.most = max(self.most, sum(worker.is_leader for worker in leading))
            self.without |= set(self._workers) - set(leading)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


@pytest.fixture
def group() -> str:
    return unique_name("workers")


@contextmanager
def workers(cluster: KafkaCluster, group: str, *names: str) -> Iterator[list[Worker]]:
    """Members of a group, the first of which leads."""
    with ExitStack() as stack:
        found: list[Worker] = []
        for name in names:
            worker = Worker(cluster, group, name)
            stack.callback(worker.stop)
            worker.start()
            found.append(worker)
            wait_for(lambda: is_whole(found), within=40, describe=lambda: describe(found))
        yield found


def is_whole(found: list[Worker]) -> bool:
    """Whether all know each other, and the first one leads."""
    urls = tuple(sorted(worker.own_url for worker in found))
    first = found[0]
    return first.is_leader and all(
        (worker.members, worker.leader_url) == (urls, first.own_url) for worker in found
    )


def describe(found: list[Worker]) -> str:
    return "; ".join(f"{w.own_url}: {w._view} {w.last_error}" for w in found)


def test_one_leads_and_all_know_it(target_cluster: KafkaCluster, group: str) -> None:
    with workers(target_cluster, group, "one", "two", "three") as (one, two, three):
        assert [worker.is_leader for worker in (one, two, three)] == [True, False, False]
        assert {worker.leader_id for worker in (one, two, three)} == {one.member_id}
        assert len({worker.generation for worker in (one, two, three)}) == 1
        assert (one.term, two.term) == (one.generation, None)
        for worker in (one, two, three):
            assert 0 < worker.lease_seconds() <= SESSION_MS / 1000 - LEASE_MARGIN_SECONDS
            assert worker.membership == worker.view.membership == 1
        assert (one.tenure, two.tenure) == (1, None)
    assert not one.is_leader
    assert [worker.lease_seconds() for worker in (one, two, three)] == [0.0, 0.0, 0.0]
    assert one.membership is None


def test_a_leader_that_stops_is_followed_at_once(target_cluster: KafkaCluster, group: str) -> None:
    with workers(target_cluster, group, "one", "two") as (one, two), Watch(one, two) as watch:
        changes: list[bool] = []
        two.on_change(lambda: changes.append(two.is_leader))
        one.stop()
        wait_for(lambda: two.is_leader, within=SESSION_MS / 1000)
        wait_for(lambda: changes[-1:] == [True], within=20)
        assert two.members == (two.own_url,)
    assert watch.most == 1


def test_a_frozen_leader_has_lost_its_lease_before_another_leads(
    target_cluster: KafkaCluster, group: str
) -> None:
    client = ClientConfig("b", tuple(target_cluster.bootstrap_servers.split(",")))
    topic = unique_name("config")
    with ExitStack() as stack:
        one, two = stack.enter_context(workers(target_cluster, group, "one", "two"))
        stores = []
        for worker in (one, two):
            # The first one's clock is wrong, so to say: it writes without looking at its lease.
            term = (lambda: 0) if worker is one else (lambda: two.term)
            store = KafkaConfigBackingStore(
                client, StorageTopic("config", topic, 1, 1), group_id=group, term=term
            )
            stack.callback(store.stop)
            store.start()
            stores.append(store)
        stores[0].put_connector("c", {"of": "one"})
        led_since: list[float] = []
        two.on_change(lambda: led_since.append(boot_clock()) if two.is_leader else None)
        with Watch(one, two) as watch:
            one.freeze()
            frozen_at = boot_clock()
            wait_for(lambda: led_since, within=SESSION_MS / 1000 + 20)
            assert one._lease.end < led_since[0]
            assert led_since[0] - frozen_at < SESSION_MS / 1000 + 10
            stores[1].claim()
            with pytest.raises(FencedError):
                stores[0].put_connector("c", {"of": "the frozen one"})
            stores[1].put_connector("d", {"of": "two"})
            assert stores[1].snapshot().connectors == {"c": {"of": "one"}, "d": {"of": "two"}}
            one.thaw()
            wait_for(lambda: is_whole([two, one]), within=20, describe=lambda: describe([one, two]))
        assert watch.most == 1


def test_a_leader_leads_on_while_the_group_waits_for_a_dead_member(
    target_cluster: KafkaCluster, group: str
) -> None:
    with workers(target_cluster, group, "one", "two") as (one, two), Watch(one) as watch:
        two.freeze()
        with ExitStack() as stack:
            three = Worker(target_cluster, group, "three")
            stack.callback(three.stop)
            three.start()
            wait_for(lambda: three.leader_url == one.own_url, within=40)
            wait_for(lambda: one.members == (one.own_url, three.own_url), within=40)
    assert watch.most == 1
    assert not watch.without


def test_members_outlive_a_restart_of_their_coordinator(group: str) -> None:
    with start_cluster("coordinator") as cluster:
        with workers(cluster, group, "one", "two") as (one, two), Watch(one, two) as watch:
            broker = cluster.brokers[0]
            broker.kill()
            wait_for(lambda: not one.is_leader, within=SESSION_MS / 1000)
            assert one.last_error
            broker.start()
            wait_for(
                lambda: is_whole([one, two]) or is_whole([two, one]),
                within=60,
                describe=lambda: describe([one, two]),
            )
            wait_for(lambda: not one.last_error + two.last_error, within=10)
        assert watch.most == 1


def test_a_crashed_coordinator_ends_the_lease_but_not_the_tenure(group: str) -> None:
    with start_cluster("coordinator") as cluster, workers(cluster, group, "one") as (one,):
        tenure, generation, lend = one.tenure, one.generation, one.lend()
        cluster.brokers[0].kill()
        wait_for(lambda: not one.is_leader, within=SESSION_MS / 1000)
        assert (one.tenure, lend()) == (tenure, 0.0)
        cluster.brokers[0].start()
        wait_for(lambda: one.is_leader, within=60, describe=lambda: describe([one]))
        assert (one.tenure, one.generation) == (tenure, generation)
        assert lend() > 0


def test_a_lead_that_another_had_in_between_is_another_tenure(
    target_cluster: KafkaCluster, group: str
) -> None:
    with workers(target_cluster, group, "one", "two") as (one, two):
        tenure, lend = one.tenure, one.lend()
        one.freeze()
        wait_for(lambda: two.is_leader, within=SESSION_MS / 1000 + 20)
        one.thaw()
        wait_for(lambda: one.tenure is None, within=20, describe=lambda: describe([one, two]))
        two.stop()
        wait_for(lambda: one.is_leader, within=SESSION_MS / 1000 + 20)
        assert one.tenure != tenure
        assert lend() == 0.0  # a task of the first tenure that is still there writes nothing


def test_a_group_of_others_is_not_joined(target_cluster: KafkaCluster, group: str) -> None:
    topic = create_topic(target_cluster)
    with member(target_cluster, topic, group):
        worker = Worker(target_cluster, group, "one")
        worker.start()
        try:
            wait_for(lambda: "INCONSISTENT_GROUP_PROTOCOL" in worker.last_error, within=20)
            assert "stop them first" in worker.last_error
            assert not worker.is_leader
        finally:
            worker.stop()
