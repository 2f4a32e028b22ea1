"""One broker with an authorizer, source and target at once, for two users with few permissions.

The flow reads as `reader` and writes as `writer`, both by SASL; whoever comes by the plain listener
(the broker itself, and the tests' own clients) may do everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from sparkmirror.embedded import KafkaCluster
from sparkmirror.mirror.permissions import NEW_BROKERS, Permission, Resource
from sparkmirror.tools.check.required_permissions import RequiredPermission
from sparkmirror.wire.principal import principal_of
from tests.clusters import start_cluster, wait_for

LISTENER = "SASL_PLAINTEXT"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SECONDS = 30.0
PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    f"listener.name.{LISTENER.lower()}.plain.sasl.jaas.config": (
        f'{PLAIN} user_reader="r" user_writer="w";'
    ),
}
PASSWORDS = {"reader": "r", "writer": "w"}
KINDS = {
    Resource.TOPIC: ResourceType.TOPIC,
    Resource.GROUP: ResourceType.GROUP,
    Resource.CLUSTER: ResourceType.BROKER,
    Resource.TRANSACTIONAL_ID: ResourceType.TRANSACTIONAL_ID,
}
ANY = AclBindingFilter(
    ResourceType.ANY,
    None,
    ResourcePatternType.ANY,
    None,
    None,
    AclOperation.ANY,
    AclPermissionType.ANY,
)


class Grant(NamedTuple):
    """A permission of one of the users."""

    principal: str
    permission: Permission


class Guarded:
    """The broker and its rules."""

    def __init__(self, kafka: KafkaCluster) -> None:
        self.kafka = kafka
        self.admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})

    def login(self, user: str) -> dict[str, str]:
        """A client's settings."""
        jaas = f'{PLAIN} username="{user}" password="{PASSWORDS[user]}";'
        return {
            "bootstrap.servers": self.kafka.servers_of(LISTENER),
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": jaas,
        }

    def has_rule(self, principal: str, topic: str) -> bool:
        """Whether there is a rule about the topic for this user."""
        rules = self.admin.describe_acls(ANY).result(SECONDS)
        return any((rule.principal, rule.name) == (principal, topic) for rule in rules)

    def allow_only(self, grants: Iterable[Grant]) -> None:
        """Exactly these rules, and no others."""
        wanted = [_binding(grant) for grant in sorted(set(grants))]
        for future in self.admin.delete_acls([ANY]).values():
            future.result(SECONDS)
        if wanted:
            for done in self.admin.create_acls(wanted).values():
                done.result(SECONDS)
        # Not their number: one rule less of another kind is as many.
        wait_for(
            lambda: set(self.admin.describe_acls(ANY).result(SECONDS)) == set(wanted),
            within=SECONDS,
            describe=f"{len(wanted)} ACLs",
        )


@contextmanager
def start_guarded() -> Iterator[Guarded]:
    """For the tests of a module."""
    listeners = {LISTENER: LISTENER}
    with start_cluster("guarded", properties=PROPERTIES, listeners=listeners) as kafka:
        yield Guarded(kafka)


def grants_of(wanted: Iterable[RequiredPermission]) -> set[Grant]:
    """What the documentation says that these need; the broker is a new one."""
    return {
        Grant(principal_of(row.client), permission)
        for row in wanted
        if row.need.unless != NEW_BROKERS
        for permission in row.permissions
    }


def _binding(grant: Grant) -> AclBinding:
    principal, permission = grant
    return AclBinding(
        KINDS[permission.resource],
        permission.name,
        ResourcePatternType.PREFIXED if permission.is_prefix else ResourcePatternType.LITERAL,
        principal,
        "*",
        AclOperation[permission.operation.name],
        AclPermissionType.ALLOW,
    )
