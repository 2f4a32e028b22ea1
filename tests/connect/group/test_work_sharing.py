"""Members that share tasks over a coordinator in memory: who runs what, and never two at once."""

from __future__ import annotations

import functools
import os
import random
import threading
from collections.abc import Callable, Iterator, Mapping

import pytest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.connect.group import worker_group_member as member_module
from sparkmirror.connect.group.assignor import Assignment
from sparkmirror.connect.group.connect_protocol import MemberState
from sparkmirror.connect.group.worker_group_member import WorkerGroupMember
from tests.clusters import wait_for
from tests.connect.group.fake_coordinator import FakeCoordinator
from tests.sharing_workers import SharingGroup, SharingWorker, tasks_of

SESSION_SECONDS = 2.0
SECONDS = 20.0
ROUNDS = int(os.environ.get("SPARKMIRROR_ROUNDS", "8"))


class Group(SharingGroup):
    """Its coordinator is in memory."""

    def __init__(self, coordinator: FakeCoordinator) -> None:
        self.coordinator = coordinator
        make_member = functools.partial(
            WorkerGroupMember,
            ClientConfig("b", ("127.0.0.1:1",)),
            "g",
            session_timeout_ms=int(SESSION_SECONDS * 1000),
            heartbeat_interval_ms=200,
            rebalance_timeout_ms=10_000,
        )
        super().__init__(make_member, 8)

    def settle(self, *workers: SharingWorker, within: float = SECONDS) -> None:
        super().settle(*workers, within=within)


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Iterator[Group]:
    coordinator = FakeCoordinator()
    monkeypatch.setattr(member_module, "GroupMember", coordinator.connect)
    coordinator.run()
    group = Group(coordinator)
    yield group
    coordinator.answers = True
    group.close()
    coordinator.close()


def test_all_members_get_their_share(group: Group) -> None:
    workers = [group.add(name) for name in ("one", "two", "three")]
    group.settle(*workers)
    assert sorted(len(worker.tasks) for worker in workers) == [2, 3, 3]
    assert sum(worker.member.is_leader for worker in workers) == 1
    assert all(worker.member.lease_seconds() > 0 for worker in workers)


def test_only_the_surplus_moves_when_a_member_joins(group: Group) -> None:
    one = group.add("one")
    group.settle(one)
    generation = one.member.generation
    two = group.add("two")
    group.settle(one, two)
    assert one.tasks == frozenset(sorted(group.configs.state[1])[:4])
    assert group.checker.moves == 4
    # One round in which they are revoked, one in which they are given.
    assert one.member.generation == generation + 2
    assert one.member.membership == 1
    figures = one.member.figures
    assert figures.rebalances >= 3
    assert figures.joins >= figures.syncs == figures.rebalances
    wait_for(lambda: figures.heartbeats >= 1, within=SECONDS)
    assert not figures.is_rebalancing
    assert figures.rebalance_age < SECONDS


def test_a_change_of_the_tasks_leaves_the_others_alone(group: Group) -> None:
    one, two = group.add("one"), group.add("two")
    group.settle(one, two)
    moves = group.checker.moves
    group.configs.change(tasks_of("x", 8) | tasks_of("y", 2))
    group.settle(one, two)
    assert group.checker.moves == moves
    group.configs.change(tasks_of("x", 8))
    group.settle(one, two)
    assert group.checker.moves == moves


@pytest.mark.parametrize("with_tasks", [True, False], ids=["whole process", "worker only"])
def test_the_tasks_of_a_frozen_member_move_after_its_lease(group: Group, with_tasks: bool) -> None:
    one, two = group.add("one"), group.add("two")
    group.settle(one, two)
    two.freeze(with_tasks=with_tasks)
    group.settle(one)
    assert two.member.lease_seconds() == 0
    assert not two.tasks
    two.thaw()
    group.settle(one, two)
    assert two.member.membership == 2


def test_a_leader_that_is_lost_takes_no_tasks_of_others_with_it(group: Group) -> None:
    one = group.add("one")
    group.settle(one)
    two, three = group.add("two"), group.add("three")
    group.settle(one, two, three)
    moves, kept = group.checker.moves, two.tasks | three.tasks
    one.freeze()
    group.settle(two, three)
    assert kept <= two.tasks | three.tasks
    assert group.checker.moves - moves <= 3
    assert two.member.membership == three.member.membership == 1
    assert two.member.is_leader or three.member.is_leader


def test_tasks_continue_after_a_pause_that_no_other_has_used(group: Group) -> None:
    one, two = group.add("one"), group.add("two")
    group.settle(one, two)
    moves, generation = group.checker.moves, two.member.generation
    two.freeze()
    while two.member.lease_seconds():  # then there is a second left
        threading.Event().wait(0.01)
    two.thaw()
    group.settle(one, two)
    assert (two.member.membership, two.member.generation) == (1, generation)
    assert group.checker.moves == moves


def test_a_coordinator_that_crashes_puts_tasks_on_hold_and_moves_none(group: Group) -> None:
    one, two = group.add("one"), group.add("two")
    group.settle(one, two)
    moves = group.checker.moves
    group.coordinator.crash()
    wait_for(lambda: not one.tasks | two.tasks, within=SECONDS)
    assert (one.member.membership, two.member.membership) == (1, 1)
    group.coordinator.restart()
    group.settle(one, two)
    assert group.checker.moves == moves
    assert (one.member.membership, two.member.membership) == (1, 1)


def test_leases_last_while_the_group_waits_for_a_leader_that_says_nothing(group: Group) -> None:
    one = group.add("one")
    group.settle(one)
    two = group.add("two")
    group.settle(one, two)
    gate, plans = threading.Event(), one._plan

    def plan(members: Mapping[str, MemberState]) -> Mapping[str, Assignment]:
        gate.wait()
        return plans(members)

    one.member._protocol._plan = plan
    three = group.add("three")
    wait_for(lambda: group.coordinator.state == "Completing", within=SECONDS)
    least = SESSION_SECONDS
    while group.coordinator.state == "Completing":
        least = min(least, two.member.lease_seconds())
    assert least > 0
    gate.set()
    group.settle(one, two, three)
    assert two.member.membership == 1


def test_a_member_that_drains_hands_over_before_it_leaves(group: Group) -> None:
    one, two = group.add("one"), group.add("two")
    group.settle(one, two)
    assert two.drain(SECONDS)
    assert not two.tasks
    assert len(group.coordinator.seats) == 1
    group.settle(one)


def test_the_last_member_drains_although_no_other_takes_over(group: Group) -> None:
    one = group.add("one")
    group.settle(one)
    assert one.drain(SECONDS)
    assert not group.coordinator.seats


def test_a_member_whose_tasks_do_not_end_leaves_without_a_word(group: Group) -> None:
    one, two = group.add("one"), group.add("two", stop_seconds=SECONDS)
    group.settle(one, two)
    assert not two.drain(0.5)
    assert two.member.membership == 1  # the others may not start its tasks yet
    two.member.stop()
    assert len(group.coordinator.seats) == 2
    group.settle(one)


def test_a_request_to_rejoin_is_answered_with_another_generation(group: Group) -> None:
    one = group.add("one")
    group.settle(one)
    seen = []
    one.member.on_change(lambda: seen.append(one.member.generation))
    generation = one.member.generation
    one.member.request_rejoin()
    wait_for(lambda: one.member.generation == generation + 1, within=SECONDS)
    assert generation + 1 in seen


def test_tasks_continue_though_a_frozen_coordinator_has_forgotten_the_only_member(
    group: Group,
) -> None:
    one = group.add("one")
    group.settle(one)
    running = dict(one._tasks)
    group.coordinator.crash()
    wait_for(lambda: one.member.lease_seconds() == 0, within=SECONDS)
    wait_for(lambda: not one.tasks, within=SECONDS)
    group.coordinator.forget()
    group.coordinator.restart()
    group.settle(one)
    assert one.member.membership == 1
    assert dict(one._tasks) == running


def test_tasks_end_if_another_has_claimed_while_the_coordinator_had_forgotten_us(
    group: Group,
) -> None:
    one = group.add("one")
    group.settle(one)
    one.freeze()
    two = group.add("two")
    group.settle(two)
    two.freeze()
    wait_for(lambda: not two.tasks, within=SECONDS)
    group.coordinator.forget()
    one.thaw()
    group.settle(one)
    assert one.member.membership == 2


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_two_never_write_whatever_happens(group: Group, seed: int) -> None:
    dice = random.Random(seed)
    names = iter(f"w{at}" for at in range(1000))
    for _ in range(3):
        group.add(next(names), dice.choice([0.0, 0.05, 0.5]))
    group.settle(*group.workers)

    def join() -> None:
        group.add(next(names), dice.choice([0.0, 0.05, 0.5]))

    def drain() -> None:
        worker = dice.choice(group.workers)
        worker.drain(SECONDS)
        group.remove(worker)

    def lose() -> None:
        worker = dice.choice(group.workers)
        worker.freeze(with_tasks=dice.random() < 0.5)
        threading.Event().wait(dice.choice([0.1, 1.2, 2.2, 3.0]))
        worker.thaw()

    def kill() -> None:
        worker = dice.choice(group.workers)
        worker.freeze(with_tasks=dice.random() < 0.5)
        group.workers.remove(worker)
        killed.append(worker)

    def forget() -> None:
        group.coordinator.crash()
        threading.Event().wait(SESSION_SECONDS + dice.choice([0.1, 1.0]))
        group.coordinator.forget()
        group.coordinator.restart()

    def configure() -> None:
        group.configs.change(tasks_of("x", dice.randint(1, 12)) | tasks_of("y", dice.randint(0, 5)))

    killed: list[SharingWorker] = []
    try:
        for _ in range(4):
            actions: list[Callable[[], None]] = [join, lose, forget, configure]
            if len(group.workers) > 1:
                actions += [drain, kill]
            dice.choice(actions)()
            threading.Event().wait(dice.choice([0.0, 0.1, 0.7]))
        group.settle(*group.workers)
    finally:
        group.workers += killed
