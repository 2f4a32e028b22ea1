"""The table of error codes against kafka-python's, which follows Apache's."""

from __future__ import annotations

from typing import Any

import kafka.errors
import pytest

from sparkmirror.wire.protocol import error_codes
from sparkmirror.wire.protocol.error_codes import ROWS, ErrorCode, broker_error, error_code


def their_errors() -> dict[int, Any]:
    """kafka-python's error classes by code."""
    base: Any = kafka.errors.BrokerResponseError
    kinds: list[Any] = [each for each in vars(kafka.errors).values() if isinstance(each, type)]
    found = [kind for kind in kinds if issubclass(kind, base)]
    return {kind.errno: kind for kind in found if isinstance(kind.errno, int)}


THEIRS = their_errors()
# Apache's names where kafka-python has its own.
RENAMED = {
    -1: "UNKNOWN_SERVER_ERROR",
    0: "NONE",
    6: "NOT_LEADER_OR_FOLLOWER",
    10: "MESSAGE_TOO_LARGE",
    17: "INVALID_TOPIC_EXCEPTION",
}
# Where we differ on whether a code passes by itself, and why.
DIFFERENT = {
    2: "the batch in our buffer is whole: its CRC was checked when it came",
    8: "a broker that is starting or ending: metadata soon names another, or the same again",
}

by_code = pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])


def test_codes_and_names_are_unique() -> None:
    assert len({row.code for row in ROWS}) == len(ROWS)
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_codes_are_in_order() -> None:
    codes = [row.code for row in ROWS]
    assert codes == sorted(codes)


@by_code
def test_names_are_those_of_kafka_python(row: ErrorCode) -> None:
    assert row.name == RENAMED.get(row.code, THEIRS[row.code].message)


@by_code
def test_what_is_retried_is_what_kafka_python_retries(row: ErrorCode) -> None:
    agreed = row.retriable == bool(THEIRS[row.code].retriable)
    assert agreed != (row.code in DIFFERENT)


@by_code
def test_metadata_is_asked_for_only_before_another_try(row: ErrorCode) -> None:
    assert row.retriable or not row.refresh


def test_named_codes_are_in_the_table() -> None:
    named = {
        name: value
        for name, value in vars(error_codes).items()
        if name.isupper() and isinstance(value, int)
    }
    assert named
    for name, code in named.items():
        assert error_code(code).name == name


def test_a_code_that_the_table_lacks_is_final() -> None:
    assert error_code(999) == ErrorCode(999, "ERROR_999", False, False)


@pytest.mark.parametrize(
    ("code", "detail", "text", "retriable"),
    [
        (6, None, "fetch t-0: NOT_LEADER_OR_FOLLOWER", True),
        (87, "record 3: too old", "fetch t-0: INVALID_RECORD (record 3: too old)", False),
        (999, None, "fetch t-0: ERROR_999", False),
    ],
)
def test_errors_name_the_request_and_the_reason(
    code: int, detail: str | None, text: str, retriable: bool
) -> None:
    error = broker_error("fetch t-0", code, detail)
    assert (str(error), error.code, error.retriable) == (text, code, retriable)
