"""Workers of one group on a real broker: one leads and never two; all share the tasks."""

from __future__ import annotations

import functools
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
from tests.sharing_workers import SharingGroup, SharingWorker

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
        assert (one.term, two.term) == (1, None)
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


# -- tasks -----------------------------------------------------------------------------------------


@pytest.fixture
def sharing(target_cluster: KafkaCluster, group: str) -> Iterator[SharingGroup]:
    client = ClientConfig("b", tuple(target_cluster.bootstrap_servers.split(",")))
    make_member = functools.partial(
        WorkerGroupMember,
        client,
        group,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=3000,  # Connect's default: ours are sent more often all the same
        rebalance_timeout_ms=60000,
    )
    found = SharingGroup(make_member, 8)
    yield found
    found.close()


def share(sharing: SharingGroup, *names: str) -> list[SharingWorker]:
    """Workers that share all tasks; the first of them leads."""
    found: list[SharingWorker] = []
    for name in names:
        found.append(sharing.add(name))
        sharing.settle(*found, within=40)
    return found


@pytest.mark.parametrize("lost", [0, 2], ids=["the leader", "a follower"])
def test_the_tasks_of_a_lost_member_run_elsewhere_soon_after_its_session(
    sharing: SharingGroup, lost: int
) -> None:
    workers = share(sharing, "one", "two", "three")
    assert sorted(len(worker.tasks) for worker in workers) == [2, 3, 3]
    one, moves = workers.pop(lost), sharing.checker.moves
    kept = [worker.tasks for worker in workers]
    assigned_at: list[float] = []
    for worker in workers:
        worker.member.on_change(lambda: assigned_at.append(boot_clock()) if has_all() else None)

    def has_all() -> bool:
        assigned = [worker.assigned for worker in workers]
        return frozenset().union(*assigned) == sharing.configs.state[1]

    # The worker says nothing; its tasks are on another machine, and write as long as they may.
    one.freeze(with_tasks=False)
    frozen_at = boot_clock()
    sharing.settle(*workers, within=SESSION_MS / 1000 + 20)
    # Its lease was over a second before the coordinator dropped it.
    assert one.member._lease.end + LEASE_MARGIN_SECONDS <= assigned_at[0]
    assert assigned_at[0] <= frozen_at + SESSION_MS / 1000 + 2
    assert all(before <= worker.tasks for before, worker in zip(kept, workers, strict=True))
    assert sharing.checker.moves - moves == 8 - sum(map(len, kept))
    assert [worker.member.membership for worker in workers] == [1, 1]
    one.thaw()
    sharing.settle(one, *workers, within=40)
    assert one.member.membership == 2


def test_a_member_that_joins_gets_the_surplus_in_two_generations(sharing: SharingGroup) -> None:
    (one,) = share(sharing, "one")
    generation, tasks = one.member.generation, sorted(one.tasks)
    two = sharing.add("two")
    sharing.settle(one, two, within=40)
    assert (one.tasks, two.tasks) == (frozenset(tasks[:4]), frozenset(tasks[4:]))
    assert sharing.checker.moves == 4
    assert one.member.generation == generation + 2
    assert one.member.view.leader_url == two.member.view.leader_url == one.member.own_url
    for worker in (one, two):
        assignment = worker.member.view.assignment
        assert assignment is not None
        assert not assignment.follow_up


def test_a_member_that_drains_leaves_its_tasks_to_the_others(sharing: SharingGroup) -> None:
    one, two, three = share(sharing, "one", "two", "three")
    kept = two.tasks
    assert one.drain(SESSION_MS / 1000)
    assert not one.tasks
    began = boot_clock()
    sharing.settle(two, three, within=20)
    # It left the group: no one had to miss it.
    assert boot_clock() - began < SESSION_MS / 1000
    assert kept <= two.tasks
    assert two.member.membership == three.member.membership == 1
