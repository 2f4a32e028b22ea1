"""Permissions on a cluster: which one a denied request lacked, for whom, and how to grant it.

Runs on: executor and worker. Kafka's brokers report only "authorization failed"; everything that
turns that into something an administrator can act on is here.
"""

from __future__ import annotations

import shlex

from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import BrokerError, DeniedError
from sparkmirror.mirror.permissions import CLUSTER_NAME, Operation, Permission, Resource
from sparkmirror.wire.principal import principal_of
from sparkmirror.wire.protocol.error_codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    GROUP_AUTHORIZATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    broker_error,
    error_code,
)

DENIALS = {
    TOPIC_AUTHORIZATION_FAILED: Resource.TOPIC,
    GROUP_AUTHORIZATION_FAILED: Resource.GROUP,
    CLUSTER_AUTHORIZATION_FAILED: Resource.CLUSTER,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Resource.TRANSACTIONAL_ID,
}
# Brokers from 2.8 on accept WRITE on any topic instead (KIP-679): a denial means that none of the
# topics to be written may be.
PRODUCING = Permission(Resource.CLUSTER, CLUSTER_NAME, Operation.IDEMPOTENT_WRITE)


def response_error(
    config: ClientConfig, what: str, code: int, *needed: Permission, detail: str | None = None
) -> BrokerError:
    """The error of a request to the cluster of `config` that needs these permissions.

    A denial names the missing one: the first of the kind that the error code is about.
    """
    kind = DENIALS.get(code)
    missing = next((permission for permission in needed if permission.resource is kind), None)
    if missing is None:
        return broker_error(what, code, detail)
    text = f"{what}: {error_code(code).name}: {describe_lack(config, missing)}"
    return DeniedError(text, code, grant_command(config, missing))


def needing(error: DeniedError, operation: Operation) -> DeniedError:
    """The same denial for a caller that needs more than it requested: READ includes DESCRIBE."""
    text = str(error.args[0]).replace("lacks DESCRIBE on", f"lacks {operation.name} on")
    grant = error.grant.replace("--operation Describe ", f"--operation {operation} ")
    return DeniedError(text, error.code, grant)


def describe_lack(config: ClientConfig, permission: Permission) -> str:
    """Who lacks which permission on which cluster."""
    if permission.resource is Resource.CLUSTER:
        place = f"cluster '{config.alias}'"
    else:
        place = f"{permission.place} of cluster '{config.alias}'"
    return f"{principal_of(config)} lacks {permission.operation.name} on {place}"


def grant_command(config: ClientConfig, permission: Permission) -> str:
    """The command with which an administrator of the cluster grants it."""
    words = [
        "kafka-acls.sh --bootstrap-server",
        shlex.quote(",".join(config.bootstrap_servers)),
        "--add --allow-principal",
        shlex.quote(principal_of(config)),
        f"--operation {permission.operation}",
        *_resource_words(permission),
    ]
    return " ".join(words)


def _resource_words(permission: Permission) -> list[str]:
    if permission.resource is Resource.CLUSTER:
        return ["--cluster"]
    pattern = ["--resource-pattern-type prefixed"] if permission.is_prefix else []
    return [*pattern, f"--{permission.resource} {shlex.quote(permission.name)}"]
