"""A group coordinator in memory, with the rules of a broker's for classic groups."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from sparkmirror.errors import TransportError
from sparkmirror.wire.client.blocking_client import BlockingClient, PendingRequest
from sparkmirror.wire.group_member import GroupSettings, RejoinError
from sparkmirror.wire.protocol.error_codes import (
    ILLEGAL_GENERATION,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)
from sparkmirror.wire.protocol.group_messages import Joined

TICK_SECONDS = 0.01


class FakeCall(PendingRequest):
    """A request whose answer is an error code and a value."""

    code = 0
    value: object = None

    def settle(self, code: int, value: object = None) -> None:
        self.code, self.value, self.response = code, value, b""


@dataclass(slots=True)
class Seat:
    """What the coordinator knows of a member."""

    metadata: bytes
    session_seconds: float
    rebalance_seconds: float
    seen_at: float
    join: FakeCall | None = None
    sync: FakeCall | None = None
    assignment: bytes = b""


@dataclass(slots=True)
class FakeCoordinator:
    """One group. `answers`: false while the broker is away."""

    generation: int = 0
    leader: str = ""
    state: str = "Stable"
    answers: bool = True
    seats: dict[str, Seat] = field(default_factory=dict)
    generations: int = 0
    _began_at: float = 0.0
    _ids: itertools.count[int] = field(default_factory=itertools.count)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _ended: threading.Event = field(default_factory=threading.Event)

    def connect(
        self, calls: BlockingClient, alias: str, settings: GroupSettings
    ) -> FakeGroupMember:
        """In place of `GroupMember`."""
        del alias
        return FakeGroupMember(self, calls, settings)

    def run(self) -> None:
        threading.Thread(target=self._watch, name="coordinator", daemon=True).start()

    def close(self) -> None:
        self._ended.set()

    def crash(self) -> None:
        """Answer nothing until `restart`, which gives every member a whole session."""
        self.answers = False

    def forget(self) -> None:
        """As one that was frozen for longer than all sessions does when it wakes."""
        with self._lock:
            self.seats.clear()
            self.state, self.leader, self.generation = "Stable", "", self.generation + 1

    def restart(self) -> None:
        with self._lock:
            for seat in self.seats.values():
                seat.seen_at = time.monotonic()
            self.answers = True

    # -- requests ----------------------------------------------------------------------------------

    def join(self, call: FakeCall, name: str, metadata: bytes, settings: GroupSettings) -> None:
        with self._lock:
            if name and name not in self.seats:
                call.settle(UNKNOWN_MEMBER_ID)
                return
            seat = self.seats.get(name)
            is_known = seat is not None and seat.metadata == metadata
            if seat is None:
                name = f"m{next(self._ids)}"
                seat = self.seats[name] = Seat(
                    metadata, settings.session_seconds, settings.rebalance_seconds, 0.0
                )
            seat.seen_at = time.monotonic()
            if is_known and self._needs_no_rebalance(name):
                call.settle(0, self._joined(name))
                return
            seat.metadata, seat.join = metadata, call
            call.value = name
            self._rebalance()

    def _needs_no_rebalance(self, name: str) -> bool:
        return self.state == "Completing" or (self.state == "Stable" and name != self.leader)

    def sync(self, call: FakeCall, name: str, generation: int, rows: Mapping[str, bytes]) -> None:
        with self._lock:
            code = self._check(name, generation)
            if code or self.state == "Preparing":
                call.settle(code or REBALANCE_IN_PROGRESS)
                return
            seat = self.seats[name]
            seat.seen_at = time.monotonic()
            if self.state == "Completing":
                seat.sync = call
                if name == self.leader:
                    self._settle_syncs(rows)
            else:
                call.settle(0, seat.assignment)

    def _settle_syncs(self, rows: Mapping[str, bytes]) -> None:
        self.state = "Stable"
        for name, seat in self.seats.items():
            seat.assignment, seat.seen_at = rows.get(name, b""), time.monotonic()
            if seat.sync is not None:
                seat.sync.settle(0, seat.assignment)
                seat.sync = None

    def heartbeat(self, name: str, generation: int) -> int:
        with self._lock:
            code = self._check(name, generation)
            if not code:
                self.seats[name].seen_at = time.monotonic()
            return code or (REBALANCE_IN_PROGRESS if self.state == "Preparing" else 0)

    def leave(self, name: str) -> None:
        with self._lock:
            if self.seats.pop(name, None) is not None:
                self._rebalance()

    # -- the group ---------------------------------------------------------------------------------

    def _check(self, name: str, generation: int) -> int:
        if name not in self.seats:
            return UNKNOWN_MEMBER_ID
        return 0 if generation == self.generation else ILLEGAL_GENERATION

    def _joined(self, name: str) -> Joined:
        rows = {each: seat.metadata for each, seat in self.seats.items()}
        members = rows if name == self.leader else {}
        return Joined(0, self.generation, self.leader, name, members)

    def _rebalance(self) -> None:
        if self.state != "Preparing":
            self.state, self._began_at = "Preparing", time.monotonic()
            for seat in self.seats.values():
                if seat.sync is not None:
                    seat.sync.settle(REBALANCE_IN_PROGRESS)
                    seat.sync = None

    def _watch(self) -> None:
        while not self._ended.wait(TICK_SECONDS):
            with self._lock:
                if self.answers:
                    self._expire(time.monotonic())
                    self._complete()

    def _expire(self, now: float) -> None:
        for name, seat in list(self.seats.items()):
            is_waiting = seat.join is not None or seat.sync is not None
            is_lost = not is_waiting and now - seat.seen_at > seat.session_seconds
            waited = now - self._began_at > seat.rebalance_seconds
            is_late = self.state == "Preparing" and seat.join is None and waited
            if is_lost or is_late:
                del self.seats[name]
                self._rebalance()

    def _complete(self) -> None:
        if self.state != "Preparing" or any(seat.join is None for seat in self.seats.values()):
            return
        self.state, self.generation = "Completing", self.generation + 1
        if self.leader not in self.seats:
            self.leader = next(iter(self.seats), "")
        for name, seat in self.seats.items():
            assert seat.join is not None
            seat.join.settle(0, self._joined(name))
            seat.join, seat.seen_at = None, time.monotonic()


class FakeGroupMember:
    """The interface of `GroupMember`."""

    def __init__(
        self, coordinator: FakeCoordinator, calls: BlockingClient, settings: GroupSettings
    ) -> None:
        self.member_id = ""
        self.generation = -1
        self._coordinator = coordinator
        self._calls = calls
        self._settings = settings

    def move_to(self, calls: BlockingClient) -> None:
        self._calls = calls

    def begin_join(self, metadata: bytes) -> FakeCall:
        call = self._call()
        self._coordinator.join(call, self.member_id, metadata, self._settings)
        return call

    def end_join(self, call: FakeCall) -> Joined:
        self._check(call.code)
        joined = call.value
        assert isinstance(joined, Joined)
        self.member_id, self.generation = joined.member, joined.generation
        return joined

    def begin_sync(self, assignments: Mapping[str, bytes]) -> FakeCall:
        call = self._call()
        self._coordinator.sync(call, self.member_id, self.generation, assignments)
        return call

    def end_sync(self, call: FakeCall) -> bytes:
        self._check(call.code)
        assert isinstance(call.value, bytes)
        return call.value

    def heartbeat_beside(self, call: FakeCall) -> tuple[float, int] | None:
        beat = self._call()
        code = self._coordinator.heartbeat(self.member_id, self.generation)
        return None if call.is_over else (beat.sent_at, code)

    def heartbeat(self) -> float:
        call = self._call()
        self._check(self._coordinator.heartbeat(self.member_id, self.generation))
        return call.sent_at

    def leave(self) -> None:
        self._call()
        self._coordinator.leave(self.member_id)

    def _call(self) -> FakeCall:
        call = FakeCall(self._calls.clock())
        if not self._coordinator.answers:
            raise TransportError("the coordinator is away")
        return call

    def _check(self, code: int) -> None:
        if code == UNKNOWN_MEMBER_ID:
            self.member_id, self.generation = "", -1
        if code:
            raise RejoinError(str(code))
