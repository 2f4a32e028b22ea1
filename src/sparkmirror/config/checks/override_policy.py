"""Which settings of the worker's clients a connector may override, as `producer.override.*`.

Mirrors: org.apache.kafka.connect.connector.policy (4.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparkmirror.config.config_def import BadValue, Definition, Importance, Key, Type

PACKAGE = "org.apache.kafka.connect.connector.policy."
SUFFIX = "ConnectorClientConfigOverridePolicy"
NAMES = ("All", "None", "Principal", "Allowlist")
PRINCIPAL = frozenset(("sasl.jaas.config", "sasl.mechanism", "security.protocol"))


@dataclass(frozen=True, slots=True)
class OverridePolicy:
    """The name of a policy, and the keys it allows; None: every key."""

    name: str = "All"
    allowed: frozenset[str] | None = None

    def allows(self, key: str) -> bool:
        return self.allowed is None or key in self.allowed

    def refusal(self, key: str) -> str:
        """The error for a connector that overrides `key` anyway, in Connect's words."""
        return (
            f"The '{self.name}' policy does not allow '{key}' to be overridden in the connector "
            "configuration."
        )


def policy_name(value: str) -> str:
    """The short name of a policy, from its class name or its short name. Raises BadValue."""
    name = value.removeprefix(PACKAGE).removesuffix(SUFFIX)
    if name not in NAMES:
        raise BadValue("not a policy known here", f"use one of {', '.join(NAMES)}")
    return name


OVERRIDE_KEYS = Definition(
    Key(
        name="connector.client.config.override.policy",
        type=Type.STRING,
        default="All",
        importance=Importance.MEDIUM,
        convert=policy_name,
        doc="The `producer.override.*` keys that a connector may set: `All`, `None`, `Principal` "
        "(its login only) or `Allowlist`.",
    ),
    Key(
        name="connector.client.config.override.allowlist",
        type=Type.LIST,
        default=(),
        importance=Importance.MEDIUM,
        doc="The keys that the policy `Allowlist` allows.",
    ),
)


def override_policy(values: Mapping[str, Any]) -> OverridePolicy:
    """The policy in the parsed OVERRIDE_KEYS."""
    name: str = values["connector.client.config.override.policy"]
    listed: tuple[str, ...] = values["connector.client.config.override.allowlist"]
    allowed = {
        "All": None,
        "None": frozenset[str](),
        "Principal": PRINCIPAL,
        "Allowlist": frozenset(listed),
    }
    return OverridePolicy(name, allowed[name])
