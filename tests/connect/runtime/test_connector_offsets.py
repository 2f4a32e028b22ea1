"""Which offsets may be written, and Connect's words for those that may not."""

from __future__ import annotations

from typing import Any

import pytest

from sparkmirror.connect.entities import RequestError
from sparkmirror.connect.runtime.connector_offsets import check_offsets, java_text

SOURCE: dict[str, Any] = {"cluster": "a", "partition": 0, "topic": "t"}
GROUP: dict[str, Any] = {"group": "g", "topic": "t", "partition": 0}
PAIR: dict[str, Any] = {"sourceClusterAlias": "a", "targetClusterAlias": "b"}
ABOUT = "Source offset {offset=%s} for source partition {cluster=a, partition=0, topic=t}"


@pytest.mark.parametrize(
    ("kind", "partition", "offset"),
    [
        ("source", SOURCE, {"offset": 5}),
        ("source", {**SOURCE, "partition": 2**31 - 1}, {"offset": 2**63 - 1}),
        ("source", {"foo": "a"}, None),
        ("source", None, None),
        ("checkpoint", GROUP, {"offset": 0}),
        ("heartbeat", PAIR, {"offset": 0}),
    ],
)
def test_what_a_connector_may_have_written_is_accepted(
    kind: str, partition: Any, offset: Any
) -> None:
    check_offsets(kind, [(partition, offset)])


@pytest.mark.parametrize(
    ("kind", "partition", "offset", "text"),
    [
        (
            "source",
            {"foo": "a"},
            5,
            "Source partition {foo=a} is missing the 'cluster' key, which is required",
        ),
        (
            "source",
            {**SOURCE, "topic": 1},
            5,
            (
                "Source partition {cluster=a, partition=0, topic=1} has an invalid value 1 for the "
                "'topic' key, which must be a string"
            ),
        ),
        (
            "source",
            {**SOURCE, "partition": 2**31},
            5,
            (
                "Source partition {cluster=a, partition=2147483648, topic=t} has an invalid value "
                "2147483648 for the 'partition' key, which must be an integer"
            ),
        ),
        (
            "source",
            {**SOURCE, "partition": -1},
            5,
            (
                "Source partition {cluster=a, partition=-1, topic=t} has an invalid value -1 for "
                "the 'partition' key, which cannot be negative"
            ),
        ),
        ("source", None, 5, "Source partitions may not be null"),
        (
            "source",
            SOURCE,
            -5,
            f"{ABOUT % -5} has an invalid value -5 for the 'offset' key, which cannot be negative",
        ),
        (
            "source",
            SOURCE,
            True,
            (
                f"{ABOUT % 'true'} has an invalid value true for the 'offset' key, which must be "
                "an integer"
            ),
        ),
        (
            "source",
            SOURCE,
            None,
            (
                f"{ABOUT % 'null'} has an invalid value null for the 'offset' key, which must be "
                "an integer"
            ),
        ),
        (
            "checkpoint",
            GROUP,
            1,
            (
                "Source offset {offset=1} for source partition {group=g, topic=t, partition=0} has "
                "an invalid value 1 for the 'offset' key; the only accepted value is 0"
            ),
        ),
        (
            "heartbeat",
            {"sourceClusterAlias": "a"},
            0,
            (
                "Source partition {sourceClusterAlias=a} is missing the 'targetClusterAlias' key, "
                "which is required"
            ),
        ),
    ],
)
def test_all_else_is_refused(kind: str, partition: Any, offset: Any, text: str) -> None:
    with pytest.raises(RequestError) as error:
        check_offsets(kind, [(partition, {"offset": offset})])
    assert (error.value.status, error.value.text) == (500, text)


def test_an_offset_needs_its_key() -> None:
    with pytest.raises(RequestError, match="is missing the 'offset' key, which is required"):
        check_offsets("source", [(SOURCE, {})])


def test_values_look_as_in_java() -> None:
    assert java_text({"a": [1, None, {"b": False}]}) == "{a=[1, null, {b=false}]}"
