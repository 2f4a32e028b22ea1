"""Flows that would copy the same records to and fro."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.config.mm2 import load_mm2

IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
LOOP = "a->b and b->a both keep topic names"


def loop_warnings(folder: Path, settings: dict[str, str]) -> list[str]:
    lines = {
        "clusters": "a, b, c",
        **{f"{alias}.bootstrap.servers": "127.0.0.1:1" for alias in "abc"},
        "a->b.enabled": "true",
        "b->a.enabled": "true",
        "replication.policy.class": IDENTITY,
        **settings,
    }
    path = folder / "mm2.properties"
    path.write_text("\n".join(f"{key} = {value}" for key, value in lines.items()))
    return [text for text in load_mm2(path).warnings if "circle for ever" in text]


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="all topics"),
        pytest.param({"a->b.topics": "orders", "b->a.topics": "payments, orders"}, id="a name"),
        pytest.param({"a->b.topics": "orders", "b->a.topics": "o.*"}, id="a name and a pattern"),
        pytest.param({"a->b.topics": "us-.*", "b->a.topics": "us-o.*"}, id="patterns"),
        pytest.param({"a->b.topics": "x|us-.*", "b->a.topics": "us-o.*"}, id="alternatives"),
        pytest.param({"a->b.topics": "us.*", "b->a.topics": "u.*"}, id="part of a prefix"),
        pytest.param({"a->b.topics": "us?.*", "b->a.topics": "ux.*"}, id="an optional character"),
        pytest.param(
            {"a->b.topics": "us-.*", "b->a.topics": "eu-.*", "topic.filter.class": "own:Filter"},
            id="a filter of one's own",
        ),
    ],
)
def test_a_loop_is_warned_of_once(settings: dict[str, str], tmp_path: Path) -> None:
    (warning,) = loop_warnings(tmp_path, settings)
    assert LOOP in warning
    assert "give the two flows different topics, or set replication.policy.class=" in warning


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"replication.policy.class": "DefaultReplicationPolicy"}, id="prefixes"),
        pytest.param({"b->a.replication.policy.class": "DefaultReplicationPolicy"}, id="one way"),
        pytest.param({"b->a.enabled": "false"}, id="one flow"),
        pytest.param({"b->a.enabled": "false", "b->c.enabled": "true"}, id="a chain"),
        pytest.param({"a->b.topics": "orders", "b->a.topics": "payments"}, id="names"),
        pytest.param({"a->b.topics": "us-.*", "b->a.topics": "eu-.*"}, id="prefixes of topics"),
        pytest.param({"a->b.topics": "us-.*", "b->a.topics": "orders"}, id="a name elsewhere"),
        pytest.param(
            {"a->b.topics": "us-.*", "b->a.topics.exclude": "us-.*"}, id="one excludes the other's"
        ),
        pytest.param(
            {"a->b.topics": "orders", "b->a.topics.exclude": "orders, x"}, id="an excluded name"
        ),
        pytest.param({"a->b.topics": "", "b->a.topics": ".*"}, id="no topics"),
    ],
)
def test_flows_that_cannot_meet_are_not_warned_of(settings: dict[str, str], tmp_path: Path) -> None:
    assert loop_warnings(tmp_path, settings) == []
