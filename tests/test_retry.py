"""How waits after failures grow, when they start again, and when there is no other attempt."""

from __future__ import annotations

from itertools import count

import pytest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import AuthenticationError, MirrorError, TransportError
from sparkmirror.retry import Backoff, RetryPolicy, retry_until, wait_for
from sparkmirror.wire.client.retry_policies import REFUSED_LOGIN, RetryPolicies
from sparkmirror.wire.fetch.fetch_places import LASTING_ERROR
from sparkmirror.wire.produce.transaction_manager import DENIED
from sparkmirror.wire.sasl.renewing import RENEWAL

CLIENT = RetryPolicies.of(
    ClientConfig(
        "a",
        ("h:1",),
        retry_backoff_ms=100,
        retry_backoff_max_ms=700,
        reconnect_backoff_ms=50,
        reconnect_backoff_max_ms=300,
        socket_connection_setup_timeout_ms=1000,
        socket_connection_setup_timeout_max_ms=3000,
    )
)
DEFAULTS = RetryPolicies.of(ClientConfig("a", ("h:1",)))


def middle(low: float, high: float) -> float:
    """No jitter: neither early nor late."""
    return (low + high) / 2


class Clock:
    """A clock that stands still until the test waits."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        return False


@pytest.mark.parametrize(
    ("policy", "waits"),
    [
        pytest.param(CLIENT.requests, [0, 0.1, 0.2, 0.4, 0.7, 0.7], id="requests"),
        pytest.param(DEFAULTS.requests, [0, 0.1, 0.2, 0.4, 0.8, 1, 1], id="their-defaults"),
        pytest.param(CLIENT.reconnects, [0, 0.05, 0.1, 0.2, 0.3, 0.3], id="reconnects"),
        pytest.param(DEFAULTS.reconnects, [0, 0.05, 0.1, 0.2, 0.4, 0.8, 1, 1], id="defaults"),
        pytest.param(CLIENT.setup_timeouts, [0, 1, 2, 3, 3], id="setup-timeouts"),
        pytest.param(DEFAULTS.setup_timeouts, [0, 10, 20, 30, 30], id="their-default-timeouts"),
        pytest.param(REFUSED_LOGIN, [0, 1, 2, 4, 8, 10, 10], id="refused-login"),
        pytest.param(LASTING_ERROR, [0, 10, 10, 10], id="fetch-errors-that-last"),
        pytest.param(DENIED, [0, 2, 2, 2], id="denied-producer-id"),
        pytest.param(RENEWAL, [0, 10, 10], id="credentials-that-still-hold"),
        pytest.param(RetryPolicy(1, 100, factor=10), [0, 1, 10, 100, 100], id="another-factor"),
        pytest.param(RetryPolicy(5, 1), [0, 1, 1], id="longest-below-first"),
    ],
)
def test_waits(policy: RetryPolicy, waits: list[float]) -> None:
    found = [policy.wait(failures, middle) for failures in range(len(waits))]
    assert found == pytest.approx(waits)


def test_many_failures_are_no_large_numbers() -> None:
    assert CLIENT.requests.wait(10**9, middle) == pytest.approx(0.7)


@pytest.mark.parametrize("policy", [CLIENT.requests, CLIENT.reconnects])
def test_waits_differ_by_a_fifth(policy: RetryPolicy) -> None:
    first = policy.first_seconds
    waits = [policy.wait(1) for _ in range(200)]
    assert first * 0.8 <= min(waits) < first < max(waits) <= first * 1.2


def test_waits_without_jitter_are_exact() -> None:
    assert {REFUSED_LOGIN.wait(2) for _ in range(50)} == {2.0}


def test_waits_of_thousands_end_at_a_few_moments() -> None:
    policy = RetryPolicy(0.4, 0.4)
    ends = {100.0 + policy.shared_wait(1, 100.0) for _ in range(1000)}
    assert all(100.32 <= end <= 100.59 for end in ends)
    assert len({round(end, 6) for end in ends}) <= 3


def test_a_shared_wait_of_nothing_stays_one() -> None:
    assert DEFAULTS.requests.shared_wait(0, 5.0) == 0.0


def exact(first: float, longest: float) -> RetryPolicy:
    return RetryPolicy(first, longest, jitter=0.0)


def test_failures_in_a_row_wait_longer_until_something_succeeds() -> None:
    backoff = Backoff(exact(1, 4))
    assert [backoff.failed() for _ in range(4)] == [1, 2, 4, 4]
    assert backoff.failures == 4
    backoff.succeeded()
    assert backoff.failures == 0
    assert backoff.failed() == 1


def test_the_next_attempt_is_due_when_the_wait_is_over() -> None:
    clock = Clock()
    backoff = Backoff(exact(1, 4), clock)
    assert backoff.is_due()
    backoff.failed()
    clock.wait(0.5)
    assert not backoff.is_due()
    clock.wait(0.5)
    assert backoff.is_due()
    backoff.failed()
    backoff.succeeded()
    assert backoff.is_due()


def test_a_reset_makes_the_next_attempt_due_and_waits_start_again() -> None:
    clock = Clock()
    backoff = Backoff(exact(1, 60), clock, healthy_seconds=60)
    backoff.succeeded()
    assert [backoff.failed(), backoff.failed()] == [1, 2]
    backoff.reset()
    assert (backoff.is_due(), backoff.failures) == (True, 0)
    assert backoff.failed() == 1


def test_waits_start_again_only_after_a_long_healthy_time() -> None:
    clock = Clock()
    backoff = Backoff(exact(1, 60), clock, healthy_seconds=60)
    assert [backoff.failed(), backoff.failed()] == [1, 2]
    backoff.succeeded()
    clock.wait(59)
    assert backoff.failed() == 4
    clock.wait(1000)
    assert backoff.failed() == 8, "waiting is not being healthy"
    backoff.succeeded()
    clock.wait(30)
    backoff.succeeded()
    clock.wait(30)
    assert backoff.failed() == 1


class Attempts:
    """Fails as it is told, and notes when."""

    def __init__(self, clock: Clock, *errors: MirrorError) -> None:
        self._clock = clock
        self._errors = list(errors)
        self.times: list[float] = []

    def __call__(self) -> str:
        self.times.append(self._clock.now - 100)
        if self._errors:
            raise self._errors.pop(0)
        return "done"


def retriable(error: MirrorError) -> bool:
    return error.retriable


def test_attempts_follow_each_other_until_one_succeeds() -> None:
    clock = Clock()
    attempt = Attempts(clock, *(TransportError(f"{n}") for n in range(3)))
    found = retry_until(
        attempt, exact(1, 2), 60, is_retriable=retriable, pause=clock.wait, clock=clock
    )
    assert found == "done"
    assert attempt.times == [0, 1, 3, 5]


def test_the_last_attempt_begins_when_the_time_is_over() -> None:
    clock = Clock()
    attempt = Attempts(clock, *(TransportError(f"{n}") for n in range(10)))
    with pytest.raises(TransportError, match=r"^3$"):
        retry_until(attempt, exact(1, 10), 5, is_retriable=retriable, pause=clock.wait, clock=clock)
    assert attempt.times == [0, 1, 3, 5]


def test_an_error_that_no_retry_helps_is_raised_at_once() -> None:
    clock = Clock()
    attempt = Attempts(clock, TransportError("passes"), AuthenticationError("stays"))
    with pytest.raises(AuthenticationError, match="stays"):
        retry_until(attempt, exact(1, 10), 5, is_retriable=retriable, pause=clock.wait, clock=clock)
    assert attempt.times == [0, 1]


def test_no_attempt_follows_when_we_are_stopping() -> None:
    clock = Clock()
    attempt = Attempts(clock, TransportError("first"), TransportError("second"))
    with pytest.raises(TransportError, match="first"):
        retry_until(
            attempt, exact(1, 10), 5, is_retriable=retriable, pause=lambda _: True, clock=clock
        )
    assert attempt.times == [0]


def test_waiting_ends_with_the_condition() -> None:
    looks = count()
    wait_for(lambda: next(looks) == 3, within=30)
    assert next(looks) == 4


@pytest.mark.parametrize("describe", ["three", lambda: "three"])
def test_a_condition_that_never_holds_is_named(describe: str) -> None:
    with pytest.raises(TimeoutError, match=r"not within 0\.01 s: three"):
        wait_for(lambda: False, within=0.01, describe=describe)
