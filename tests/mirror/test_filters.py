"""Include and exclude patterns."""

from __future__ import annotations

import re

import pytest

from sparkmirror.mirror.filters import (
    DefaultConfigPropertyFilter,
    DefaultGroupFilter,
    DefaultTopicFilter,
)

ALL = re.compile(".*")
DEFAULT_EXCLUDE = re.compile(r"mm2.*\.internal|.*\.replica|__.*")
DEFAULT_GROUPS_EXCLUDE = re.compile(r"console-consumer-.*|connect-.*|__.*")


@pytest.mark.parametrize(
    ("include", "exclude", "topic", "expected"),
    [
        pytest.param(ALL, None, "orders", True, id="no exclude excludes nothing"),
        pytest.param(None, None, "orders", False, id="no include includes nothing"),
        pytest.param(None, ALL, "orders", False, id="neither"),
        pytest.param(ALL, ALL, "orders", False, id="exclude wins"),
        pytest.param(re.compile("order"), None, "orders", False, id="prefix is not enough"),
        pytest.param(re.compile("a|order"), None, "orders", False, id="alternatives match fully"),
        pytest.param(re.compile("a|orders"), None, "orders", True, id="second alternative"),
        pytest.param(re.compile("a.b"), None, "a-b", True, id="a plain name is a pattern"),
        pytest.param(ALL, re.compile("order"), "orders", True, id="exclude matches fully"),
        pytest.param(ALL, DEFAULT_EXCLUDE, "__consumer_offsets", False, id="default underscores"),
        pytest.param(ALL, DEFAULT_EXCLUDE, "mm2-offsets.A.internal", False, id="default internal"),
        pytest.param(ALL, DEFAULT_EXCLUDE, "my.internal", True, id="default keeps users' internal"),
        pytest.param(ALL, DEFAULT_EXCLUDE, "x.replica", False, id="default replica"),
    ],
)
def test_topic_filter(
    include: re.Pattern[str] | None, exclude: re.Pattern[str] | None, topic: str, expected: bool
) -> None:
    assert DefaultTopicFilter(include, exclude).should_replicate_topic(topic) is expected


@pytest.mark.parametrize(
    ("include", "exclude", "group", "expected"),
    [
        pytest.param(ALL, None, "billing", True, id="no exclude excludes nothing"),
        pytest.param(None, None, "billing", False, id="no include includes nothing"),
        pytest.param(ALL, ALL, "billing", False, id="exclude wins"),
        pytest.param(re.compile("bill"), None, "billing", False, id="prefix is not enough"),
        pytest.param(re.compile("a|billing"), None, "billing", True, id="second alternative"),
        pytest.param(ALL, None, "", True, id="the group without a name"),
        pytest.param(ALL, DEFAULT_GROUPS_EXCLUDE, "console-consumer-12", False, id="console"),
        pytest.param(ALL, DEFAULT_GROUPS_EXCLUDE, "connect-sink", False, id="Connect's sinks"),
        pytest.param(ALL, DEFAULT_GROUPS_EXCLUDE, "my-connect-sink", True, id="not at the start"),
    ],
)
def test_group_filter(
    include: re.Pattern[str] | None, exclude: re.Pattern[str] | None, group: str, expected: bool
) -> None:
    assert DefaultGroupFilter(include, exclude).should_replicate_group(group) is expected


@pytest.mark.parametrize(
    ("exclude", "name", "expected"),
    [
        (None, "min.insync.replicas", True),
        ("min.insync.replicas", "min.insync.replicas", False),
        ("min.insync", "min.insync.replicas", True),
        ("exclude_param.*", "exclude_param.param1", False),
        # MirrorMaker 2's default exclude has `log.` in front, so the topic setting is copied.
        ("log.message.timestamp.after.max.ms", "message.timestamp.after.max.ms", True),
    ],
)
def test_config_property_filter(exclude: str | None, name: str, expected: bool) -> None:
    pattern = None if exclude is None else re.compile(exclude)
    assert DefaultConfigPropertyFilter(pattern).should_replicate_config_property(name) is expected
