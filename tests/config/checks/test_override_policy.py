"""Which settings a connector may override."""

from __future__ import annotations

import pytest

from sparkmirror.errors import ConfigErrors
from tests.config.worker_files import worker_with

POLICY = "connector.client.config.override.policy"
CLASS = "org.apache.kafka.connect.connector.policy.NoneConnectorClientConfigOverridePolicy"


@pytest.mark.parametrize(
    ("policy", "allowed", "refused"),
    [
        ("All", ("acks", "bootstrap.servers", "sasl.mechanism"), ()),
        ("None", (), ("acks", "bootstrap.servers", "sasl.mechanism")),
        (CLASS, (), ("acks",)),
        ("NoneConnectorClientConfigOverridePolicy", (), ("acks",)),
        ("Principal", ("sasl.mechanism", "sasl.jaas.config"), ("acks", "ssl.protocol")),
        ("Allowlist", ("acks", "linger.ms"), ("bootstrap.servers",)),
    ],
)
def test_policy(policy: str, allowed: tuple[str, ...], refused: tuple[str, ...]) -> None:
    listed = {"connector.client.config.override.allowlist": "acks, linger.ms"}
    found = worker_with({POLICY: policy} | listed).override
    assert all(found.allows(key) for key in allowed)
    assert not any(found.allows(key) for key in refused)


def test_rejection_is_connects() -> None:
    assert worker_with({POLICY: "None"}).override.refusal("acks") == (
        "The 'None' policy does not allow 'acks' to be overridden in the connector configuration."
    )


def test_everything_is_allowed_by_default() -> None:
    assert worker_with({}).override.name == "All"


def test_unknown_policy_is_an_error() -> None:
    with pytest.raises(ConfigErrors, match="not a policy known here; use one of All, None"):
        worker_with({POLICY: "com.example.Policy"})
