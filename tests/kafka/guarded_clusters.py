"""Clusters with an authorizer, as their administrator sees them: librdkafka's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourcePatternType,
    ResourceType,
)

from sparkmirror.embedded import KafkaCluster
from tests.clusters import wait_for

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
LITERAL, PREFIXED = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
WORKER = "User:ANONYMOUS"
SECONDS = 30.0
Change = tuple[str, str | None]


class Cluster:
    """One of them: topic settings and ACLs."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self.kafka = cluster
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})

    def alter(self, topic: str, *changes: Change, known_by: str | None = None) -> None:
        """Set settings of a topic, all at once; None deletes.

        Known to the broker when all are there; or `known_by` alone, if somebody undoes the others.
        """
        entries = [
            ConfigEntry(name, value or "", incremental_operation=_operation(value))
            for name, value in changes
        ]
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
        self._admin.incremental_alter_configs([resource])[resource].result(SECONDS)
        looked_at = {name: value for name, value in changes if known_by in (None, name)}
        wait_for(
            lambda: (
                looked_at.items()
                <= {**dict.fromkeys(looked_at), **self.own_settings(topic)}.items()
            ),
            within=SECONDS,
            describe=f"{changes} of {topic} are known to the broker",
        )

    def own_settings(self, topic: str) -> dict[str, str]:
        """What is set on the topic itself."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        found = self._admin.describe_configs([resource])[resource].result(SECONDS)
        own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        return {name: entry.value for name, entry in found.items() if entry.source == own}

    def create_acls(self, rules: Sequence[tuple[Any, ...]]) -> None:
        bindings = [AclBinding(*_place(rule)) for rule in rules]
        for future in self._admin.create_acls(bindings).values():
            future.result(SECONDS)
        names = {rule[0] for rule in rules}
        wait_for(
            lambda: len(self.acls(*names)) >= len(rules), within=SECONDS, describe="ACLs are there"
        )

    def delete_acls(self, rules: Sequence[tuple[Any, ...]]) -> None:
        filters = [AclBindingFilter(*_place(rule)) for rule in rules]
        for future in self._admin.delete_acls(filters).values():
            future.result(SECONDS)
        names = {rule[0] for rule in rules}
        gone = set(rules)
        wait_for(lambda: not gone & self.acls(*names), within=SECONDS, describe="ACLs are gone")

    def acls(self, *names: str) -> set[tuple[Any, ...]]:
        """Rules for these names of topics, patterns of any kind."""
        wanted = AclBindingFilter(
            ResourceType.TOPIC, None, ResourcePatternType.ANY, None, None,
            AclOperation.ANY, AclPermissionType.ANY,
        )  # fmt: skip
        found = self._admin.describe_acls(wanted).result(SECONDS)
        return {
            (acl.name, acl.resource_pattern_type, acl.principal, acl.operation, acl.permission_type)
            for acl in found
            if acl.name in names
        }


def _operation(value: str | None) -> AlterConfigOpType:
    return AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET


def _place(rule: tuple[Any, ...]) -> tuple[Any, ...]:
    name, pattern, principal, operation, permission = rule
    return (ResourceType.TOPIC, name, pattern, principal, "*", operation, permission)


def rule(
    name: str,
    operation: AclOperation,
    permission: AclPermissionType = ALLOW,
    principal: str = "User:ann",
    pattern: ResourcePatternType = LITERAL,
) -> tuple[Any, ...]:
    return (name, pattern, principal, operation, permission)


def all_but(denied: AclOperation, topic: str) -> list[tuple[Any, ...]]:
    """The worker may do everything with the topic but one thing."""
    return [
        rule(topic, AclOperation.ALL, principal=WORKER),
        rule(topic, denied, DENY, WORKER),
    ]
