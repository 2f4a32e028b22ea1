"""Class names: MirrorMaker 2's own, aliases of them, and Python classes."""

from __future__ import annotations

import pytest

from sparkmirror.config.config_def import BadValue
from sparkmirror.config.keys.classes import (
    DEFAULT_POLICY,
    IDENTITY_POLICY,
    config_property_filter_class,
    forwarding_admin_class,
    group_filter_class,
    policy_class,
    topic_filter_class,
)

MIRROR = "org.apache.kafka.connect.mirror."


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"{MIRROR}DefaultReplicationPolicy", DEFAULT_POLICY),
        ("DefaultReplicationPolicy", DEFAULT_POLICY),
        (f"{MIRROR}IdentityReplicationPolicy", IDENTITY_POLICY),
        ("IdentityReplicationPolicy", IDENTITY_POLICY),
        ("com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy", IDENTITY_POLICY),
        ("my.policies:SuffixPolicy", "my.policies:SuffixPolicy"),
    ],
)
def test_policy_is_known(name: str, expected: str) -> None:
    assert policy_class(name) == expected


@pytest.mark.parametrize("name", ["com.example.MyPolicy", "Default", "a b:C", "", ":C", "m:"])
def test_unknown_policy_is_rejected_with_the_way_to_port_it(name: str) -> None:
    with pytest.raises(BadValue) as caught:
        policy_class(name)
    assert "Java classes cannot be loaded" in caught.value.reason
    assert "as a Python class and name it module:Class" in caught.value.remedy
    assert DEFAULT_POLICY in caught.value.remedy


def test_filters_are_known() -> None:
    assert topic_filter_class("DefaultTopicFilter") == f"{MIRROR}DefaultTopicFilter"
    assert group_filter_class("my:Filter") == "my:Filter"
    full = f"{MIRROR}DefaultConfigPropertyFilter"
    assert config_property_filter_class(full) == full
    with pytest.raises(BadValue, match="Java classes cannot be loaded"):
        topic_filter_class(DEFAULT_POLICY)


def test_only_kafkas_forwarding_admin_is_accepted() -> None:
    name = "org.apache.kafka.clients.admin.ForwardingAdmin"
    assert forwarding_admin_class("ForwardingAdmin") == name
    with pytest.raises(BadValue, match="Java classes cannot be loaded"):
        forwarding_admin_class("com.example.Admin")
