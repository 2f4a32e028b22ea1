"""How long a place in the group is certain, and what may be lent: with a clock of the test."""

from __future__ import annotations

import pytest

from sparkmirror.connect.group.connect_protocol import Assignment
from sparkmirror.connect.group.group_place import DOUBT_SECONDS, GroupPlace, GroupView
from sparkmirror.connect.group.member_lease import LEASE_MARGIN_SECONDS, MemberLease
from sparkmirror.connect.group.tenure import Continuity, Tenure
from sparkmirror.types import ConnectorTaskId
from sparkmirror.wire.group_member import GroupSettings
from tests.sharing_workers import tasks_of

SETTINGS = GroupSettings("g", "connect", "ours", 10_000, 60_000)
LEASE_SECONDS = 10 - LEASE_MARGIN_SECONDS
X0, X1, X2 = sorted(tasks_of("x", 3))


class Place(GroupPlace):
    """As the member's thread changes it, at times that a test gives."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.has_claim = False
        self.claims_asked = 0
        super().__init__(SETTINGS, "u", "b", lambda: self.now, self._asked)
        self.changes = 0
        self.on_change(self._count)

    def _count(self) -> None:
        self.changes += 1

    def take(
        self, generation: int, tasks: str = "", revoked: str = "", *, leads: bool = False
    ) -> GroupView:
        assignment = Assignment(tasks=named(tasks), revoked=named(revoked))
        self._take_place(
            GroupView("m", generation, "l", leads=leads, assignment=assignment), self.now
        )
        return self.view

    def beat(self, *, is_stable: bool = True) -> None:
        self._renew_lease(self.now, is_stable=is_stable)
        self._notify()

    def join(self, tasks: str) -> None:
        self._claim(named(tasks))

    def lose(self) -> None:
        self._lose_place()

    def doubt(self) -> None:
        self._doubt_place()

    def look(self) -> None:
        self._notify()

    def _asked(self) -> bool:
        self.claims_asked += 1
        return self.has_claim


def named(tasks: str) -> frozenset[ConnectorTaskId]:
    return frozenset(ConnectorTaskId(name[0], int(name[1:])) for name in tasks.split())


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.mark.parametrize(
    ("responded", "stable", "now", "left"),
    [
        (0, 0, 0, 9),
        (0, 0, 9, 0),
        (5, 0, 6, 8),
        (55, 0, 56, 3),  # the others wait for us to join again: the rebalance timeout counts
        (58, 0, 59, 0),
        (58, 55, 59, 8),
        (0, 0, 100, 0),
    ],
)
def test_the_lease_ends_a_second_before_the_coordinator_drops_us(
    responded: float, stable: float, now: float, left: float
) -> None:
    time = [0.0]
    lease = MemberLease(SETTINGS, lambda: time[0])
    lease.renew(stable, is_stable=True)
    lease.renew(responded, is_stable=False)
    lease.renew(responded - 1, is_stable=False)  # its response came late
    assert lease.is_over  # nothing counts before there is an assignment
    lease.extend()
    time[0] = now
    assert (lease.seconds, lease.is_over) == (left, not left)


def test_every_member_has_a_lease_from_its_first_assignment_on(place: Place) -> None:
    place.beat()
    assert (place.lease_seconds(), place.membership, place.view.membership) == (0, None, 0)
    place.take(1, "x0")
    assert (place.lease_seconds(), place.membership, place.view.membership) == (LEASE_SECONDS, 1, 1)
    assert (place.is_leader, place.term, place.tenure) == (False, None, None)


def test_a_follower_that_is_elected_begins_a_tenure_in_the_same_membership(place: Place) -> None:
    view = place.take(1, "x0")
    lend = place.lend_to(X0, view)
    place.take(2, "x0", leads=True)
    assert (place.is_leader, place.term, place.tenure, place.membership) == (True, 1, 1, 1)
    assert lend() == LEASE_SECONDS


def test_a_task_that_was_another_members_for_a_while_needs_another_start(place: Place) -> None:
    view = place.take(1, "x0")
    lend = place.lend_to(X0, view)
    place.take(2, "")
    place.take(3, "")
    assert lend() == 0
    late = place.lend_to(X0, view)  # by a thread that has seen nothing of it
    view = place.take(4, "x0")
    assert (lend(), late(), place.lend_to(X0, view)()) == (0, 0, LEASE_SECONDS)


def test_a_generation_within_the_lease_keeps_what_runs(place: Place) -> None:
    lend = place.lend_to(X0, place.take(1, "x0", leads=True))
    place.now += LEASE_SECONDS - 1
    place.take(2, "x0", leads=True)
    assert (place.membership, place.tenure, lend()) == (1, 1, LEASE_SECONDS)


def test_a_generation_after_the_lease_begins_another_membership(place: Place) -> None:
    lend, lend_all = place.lend_to(X0, place.take(1, "x0", leads=True)), place.lend()
    place.now += LEASE_SECONDS
    assert (lend(), place.is_leader) == (0, False)
    view = place.take(2, "x0", leads=True)
    assert (place.membership, place.tenure) == (2, 2)
    assert (lend(), lend_all()) == (0, 0)  # tasks of before, which may run elsewhere
    assert place.lend_to(X0, view)() == place.lend()() == LEASE_SECONDS


def test_a_heartbeat_in_the_same_generation_lets_tasks_continue(place: Place) -> None:
    lend = place.lend_to(X0, place.take(1, "x0", leads=True))
    place.now += LEASE_SECONDS + 5
    assert (place.membership, place.tenure, lend()) == (1, 1, 0)
    place.beat()
    assert (place.membership, place.tenure, lend()) == (1, 1, LEASE_SECONDS)


def test_a_doubt_that_lasts_ends_membership_and_tenure(place: Place) -> None:
    place.take(1, "x0", leads=True)
    place.now += LEASE_SECONDS + DOUBT_SECONDS
    assert (place.membership, place.tenure) == (None, None)


def test_a_lost_place_is_another_membership_though_the_lease_was_good(place: Place) -> None:
    lend = place.lend_to(X0, place.take(1, "x0"))
    place.lose()
    assert (place.lease_seconds(), place.membership, lend()) == (0, None, 0)
    place.take(2, "x0")
    assert (place.membership, lend()) == (2, 0)


@pytest.mark.parametrize(
    ("has_claim", "leads", "seconds", "continues"),
    [
        (True, True, 5.0, True),
        (True, True, LEASE_SECONDS + 5.0, True),
        (False, True, 5.0, False),  # another has claimed
        (True, False, 5.0, False),  # another leads
        (True, True, LEASE_SECONDS + DOUBT_SECONDS, False),
    ],
)
def test_a_leader_that_was_forgotten_continues_if_no_other_could_give_tasks_away(
    place: Place, has_claim: bool, leads: bool, seconds: float, continues: bool
) -> None:
    lend = place.lend_to(X0, place.take(3, "x0", leads=True))
    tenure = place.tenure
    place.has_claim = has_claim
    place.now += seconds
    place.doubt()
    assert lend() == 0
    assert place.is_leader is False
    place.take(5, "x0", leads=leads)
    assert (place.membership == 1) == continues
    assert lend() == (LEASE_SECONDS if continues else 0)
    assert (leads and place.tenure == tenure) == continues


def test_a_follower_that_was_forgotten_has_lost_its_place(place: Place) -> None:
    lend = place.lend_to(X0, place.take(3, "x0"))
    place.doubt()
    assert place.membership is None
    place.take(5, "x0", leads=True)
    assert lend() == 0
    assert place.claims_asked == 0


def test_a_revoked_task_keeps_its_lease_until_we_join_without_it(place: Place) -> None:
    lend = place.lend_to(X0, place.take(1, "x0 x1"))
    place.take(2, "x1", revoked="x0")
    assert lend() == LEASE_SECONDS  # for its last positions
    place.join("x0 x1")
    assert lend() == LEASE_SECONDS  # it has not ended yet
    place.join("x1")
    assert lend() == 0
    place.take(3, "x1")
    assert lend() == 0


def test_an_assignment_that_was_seen_late_lends_nothing(place: Place) -> None:
    old = place.take(1, "x0 x1")
    place.join("x0 x1")
    place.take(2, "x1", revoked="x0")
    place.join("x1")
    place.take(3, "x1")
    assert place.lend_to(X0, old)() == 0
    assert place.lend_to(X1, old)() == LEASE_SECONDS
    assert place.lend_to(X2, place.view)() == 0


def test_changes_are_told_once(place: Place) -> None:
    place.take(1, "x0")
    place.look()
    assert place.changes == 1
    place.now += LEASE_SECONDS
    place.look()
    place.look()
    assert place.changes == 2
    place.beat()
    assert place.changes == 3
    place.lose()
    place.lose()
    assert place.changes == 4


def test_the_log_says_what_becomes_of_tasks(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    place.take(1, "x0")
    place.now += LEASE_SECONDS
    place.look()
    place.beat()
    place.lose()
    assert [record.message.split(" u ")[1][:30] for record in caplog.records] == [
        "has not heard from the group's",
        "has lost its place in the grou",
    ]


def test_a_member_without_tasks_loses_its_place_without_a_word(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    place.take(1)
    place.now += LEASE_SECONDS
    place.look()
    place.lose()
    assert not caplog.records


def test_gaps_are_seen_though_they_are_over(place: Place) -> None:
    continuity, tenure = Continuity(lambda: place.membership), Tenure(place)
    assert continuity.has_lapsed()
    place.take(1, leads=True)
    assert not continuity.has_lapsed() | tenure.has_lapsed()
    place.take(2, leads=True)
    assert not continuity.has_lapsed() | tenure.has_lapsed()
    place.now += LEASE_SECONDS
    place.take(3, leads=True)
    assert continuity.has_lapsed() & tenure.has_lapsed()
    assert not continuity.has_lapsed() | tenure.has_lapsed()
    place.lose()
    assert continuity.has_lapsed() & tenure.has_lapsed()
