"""Who is asked when a coordinator does not respond."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import pytest

from sparkmirror.batches.header import Buffer
from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import BrokerError, TransportError
from sparkmirror.wire.client.blocking_client import BlockingClient, PendingRequest
from sparkmirror.wire.group_member import GroupMember, GroupSettings, RejoinError
from sparkmirror.wire.protocol.error_codes import (
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)

NOT_COORDINATOR = 16
SETTINGS = GroupSettings("g", "connect", "ours", 6000, 60000)


class FakeCalls:
    """Responses of a coordinator: an error code, or None for a broker that is not reached."""

    def __init__(self, *codes: int | None) -> None:
        self.config = ClientConfig("b", ("127.0.0.1:1",))
        self.codes = list(codes)
        self.found = 0

    def find_coordinator(self, key: str, kind: int, seconds: float) -> int:
        self.found += 1
        return self.found

    def send(
        self,
        node: int,
        api: tuple[int, int],
        body: Sequence[Buffer],
        seconds: float,
        line: int = 0,
    ) -> PendingRequest:
        assert node == self.found
        code = self.codes.pop(0)
        if code is None:
            raise TransportError("no connection")
        call = PendingRequest(0.0)
        call.response = b"\0\0\0\0" + code.to_bytes(2, "big")
        return call

    def wait(self, done: Callable[[], bool], seconds: float) -> bool:
        return done()


def member_of(calls: FakeCalls) -> GroupMember:
    member = GroupMember(cast("BlockingClient", calls), "b", SETTINGS)
    member.member_id, member.generation = "m", 3
    return member


def test_a_coordinator_that_is_not_reached_is_looked_for_again() -> None:
    calls = FakeCalls(0, None, 0)
    member = member_of(calls)
    member.heartbeat()
    with pytest.raises(TransportError):
        member.heartbeat()
    assert calls.found == 1
    member.heartbeat()
    assert calls.found == 2


def test_a_coordinator_that_lost_the_group_is_looked_up_again() -> None:
    calls = FakeCalls(NOT_COORDINATOR, 0)
    member = member_of(calls)
    with pytest.raises(BrokerError):
        member.heartbeat()
    member.heartbeat()
    assert calls.found == 2


@pytest.mark.parametrize(
    ("code", "member_id", "generation"),
    [
        (REBALANCE_IN_PROGRESS, "m", 3),
        (ILLEGAL_GENERATION, "m", 3),
        (UNKNOWN_MEMBER_ID, "", -1),
    ],
)
def test_a_group_that_has_changed(code: int, member_id: str, generation: int) -> None:
    member = member_of(FakeCalls(code))
    with pytest.raises(RejoinError):
        member.heartbeat()
    assert (member.member_id, member.generation) == (member_id, generation)


def test_a_refusal_is_no_reason_to_join_again() -> None:
    member = member_of(FakeCalls(INCONSISTENT_GROUP_PROTOCOL))
    with pytest.raises(BrokerError) as caught:
        member.heartbeat()
    assert not caught.value.retriable
