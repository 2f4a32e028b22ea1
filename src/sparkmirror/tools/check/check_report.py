"""The results of `sparkmirror check`: for each cluster, and for each permission.

Runs on: any machine. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sparkmirror.connect.naming import some_names
from sparkmirror.mirror.permissions import Need, Permission, Resource

# Why the permissions on a cluster are unknown; the checks of the cluster have the details.
NO_CONNECTION = "no connection"


class CheckResult(StrEnum):
    """`WITHOUT`: missing, but not required."""

    YES = "yes"
    NO = "NO"
    WITHOUT = "no"
    UNKNOWN = "?"


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a cluster."""

    what: str
    state: CheckResult
    detail: str = ""

    def as_json(self) -> dict[str, Any]:
        return {"check": self.what, "state": self.state.value, "detail": self.detail}


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """One login at one cluster."""

    alias: str
    servers: tuple[str, ...]
    principal: str
    checks: tuple[Check, ...]

    @property
    def is_ok(self) -> bool:
        return all(check.state in (CheckResult.YES, CheckResult.WITHOUT) for check in self.checks)

    def as_json(self) -> dict[str, Any]:
        return {
            "cluster": self.alias,
            "bootstrap_servers": list(self.servers),
            "principal": self.principal,
            "ok": self.is_ok,
            "checks": [check.as_json() for check in self.checks],
        }


@dataclass(frozen=True, slots=True)
class PermissionReport:
    """One row of the table of permissions; `denied` are the missing ones of `permissions`.

    `grants` are commands that grant what is missing. `detail` explains an unknown result;
    `is_unreported`: brokers of that release do not report it, which is not a failure.
    """

    flow: str
    alias: str
    principal: str
    need: Need
    state: CheckResult
    permissions: tuple[Permission, ...]
    denied: tuple[Permission, ...] = ()
    grants: tuple[str, ...] = ()
    detail: str = ""
    is_unreported: bool = False

    @property
    def is_ok(self) -> bool:
        return self.is_unreported or self.state in (CheckResult.YES, CheckResult.WITHOUT)

    @property
    def is_unchecked(self) -> bool:
        """Whether there was no connection to the cluster."""
        return self.state is CheckResult.UNKNOWN and self.detail == NO_CONNECTION

    def as_json(self) -> dict[str, Any]:
        return {
            "for": self.flow,
            "feature": self.need.feature.value,
            "cluster": self.alias,
            "principal": self.principal,
            "operation": self.need.operation.name,
            "resource": self.permissions[0].resource.value if self.permissions else None,
            "names": [permission.name for permission in self.permissions],
            "denied": [permission.name for permission in self.denied],
            "state": self.state.value,
            "why": self.need.why,
            "without": self.need.without if self.denied else None,
            "grant": list(self.grants),
            "detail": self.detail or None,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """Everything about one file."""

    file: str
    kind: str
    clusters: tuple[ClusterReport, ...]
    permissions: tuple[PermissionReport, ...]
    warnings: tuple[str, ...] = ()
    # Settings that cannot work.
    problems: tuple[str, ...] = ()

    @property
    def is_ok(self) -> bool:
        """Whether no needed permission is missing, or unknown although brokers could report it."""
        clusters_ok = all(cluster.is_ok for cluster in self.clusters) and not self.problems
        return clusters_ok and all(permission.is_ok for permission in self.permissions)

    def as_json(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "file": self.file,
            "kind": self.kind,
            "ok": self.is_ok,
            "clusters": [cluster.as_json() for cluster in self.clusters],
            "permissions": [permission.as_json() for permission in self.permissions],
            "problems": list(self.problems),
            "warnings": list(self.warnings),
        }


def describe_names(permissions: Sequence[Permission]) -> str:
    """The resources of some permissions, briefly."""
    if not permissions or permissions[0].resource is Resource.CLUSTER:
        return "the cluster"
    kind = permissions[0].resource
    if len(permissions) == 1:
        return f"{kind} {permissions[0].name}"
    return (
        f"{len(permissions)} {kind}s: {some_names([permission.name for permission in permissions])}"
    )
