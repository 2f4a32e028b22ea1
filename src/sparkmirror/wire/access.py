"""Permissions on a cluster: which one a denied request lacked, for whom, and how to grant it.

Runs on: executor and worker. Kafka's brokers say only "authorization failed"; everything that turns
such an answer into something that an administrator can act on is here.
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
# Brokers from 2.8 on are content with a right to write any topic: none of the topics that were to
# be written may be, then.
PRODUCING = Permission(Resource.CLUSTER, CLUSTER_NAME, Operation.IDEMPOTENT_WRITE)


def answer_error(
    config: ClientConfig, what: str, code: int, *needed: Permission, detail: str | None = None
) -> BrokerError:
    """The error of a request to the cluster of `config` that needs these rights.

    A denial names the one that is missing: the first that is about what the code is about.
    """
    kind = DENIALS.get(code)
    missing = next((right for right in needed if right.resource is kind), None)
    if missing is None:
        return broker_error(what, code, detail)
    text = f"{what}: {error_code(code).name}: {describe_lack(config, missing)}"
    return DeniedError(text, code, grant_command(config, missing))


def needing(error: DeniedError, operation: Operation) -> DeniedError:
    """The same denial for whoever needs more than was asked for: READ includes DESCRIBE."""
    text = str(error.args[0]).replace("lacks DESCRIBE on", f"lacks {operation.name} on")
    grant = error.grant.replace("--operation Describe ", f"--operation {operation} ")
    return DeniedError(text, error.code, grant)


def describe_lack(config: ClientConfig, right: Permission) -> str:
    """Who lacks which right on which cluster."""
    if right.resource is Resource.CLUSTER:
        place = f"cluster '{config.alias}'"
    else:
        place = f"{right.place} of cluster '{config.alias}'"
    return f"{principal_of(config)} lacks {right.operation.name} on {place}"


def grant_command(config: ClientConfig, right: Permission) -> str:
    """The command with which an administrator of the cluster grants it."""
    words = [
        "kafka-acls.sh --bootstrap-server",
        shlex.quote(",".join(config.bootstrap_servers)),
        "--add --allow-principal",
        shlex.quote(principal_of(config)),
        f"--operation {right.operation}",
        *_resource_words(right),
    ]
    return " ".join(words)


def _resource_words(right: Permission) -> list[str]:
    if right.resource is Resource.CLUSTER:
        return ["--cluster"]
    pattern = ["--resource-pattern-type prefixed"] if right.is_prefix else []
    return [*pattern, f"--{right.resource} {shlex.quote(right.name)}"]
