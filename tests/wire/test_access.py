"""Which permission a denial is about, and the command that grants it."""

from __future__ import annotations

import shlex

import pytest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.config_def import Secret
from sparkmirror.errors import BrokerError, DeniedError
from sparkmirror.mirror.permissions import (
    Operation,
    Permission,
    Resource,
    cluster_permission,
    group_permission,
    topic_permission,
    transaction_permission,
)
from sparkmirror.wire.access import PRODUCING, grant_command, needing, response_error
from sparkmirror.wire.principal import principal_of

JAAS = 'x.PlainLoginModule required username="{}" password="p";'


def client(**security: str) -> ClientConfig:
    settings: dict[str, str | Secret] = {k.replace("_", "."): v for k, v in security.items()}
    return ClientConfig("b", ("h1:9092", "h2:9092"), security=settings)


def login(mechanism: str, jaas: str) -> ClientConfig:
    settings: dict[str, str | Secret] = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": Secret(jaas),
    }
    return ClientConfig("b", ("h1:9092",), security=settings)


@pytest.mark.parametrize(
    ("code", "missing"),
    [
        pytest.param(29, "WRITE on topic 't' of cluster 'b'", id="topic"),
        pytest.param(30, "READ on group 'g' of cluster 'b'", id="group"),
        pytest.param(31, "IDEMPOTENT_WRITE on cluster 'b'", id="cluster"),
        pytest.param(53, "WRITE on transactional id 'x' of cluster 'b'", id="transaction"),
    ],
)
def test_a_denial_names_the_right_that_its_code_is_about(code: int, missing: str) -> None:
    needed = (
        topic_permission(Operation.WRITE, "t"),
        group_permission(Operation.READ, "g"),
        transaction_permission(Operation.WRITE, "x"),
        PRODUCING,
    )
    error = response_error(client(), "do it on 'b'", code, *needed, detail="no")
    assert isinstance(error, DeniedError)
    assert not error.retriable
    assert f"_AUTHORIZATION_FAILED: User:ANONYMOUS lacks {missing}; to allow it: " in str(error)


@pytest.mark.parametrize("code", [3, 29], ids=["no-denial", "nothing-needed"])
def test_any_other_code_is_an_ordinary_error(code: int) -> None:
    needed = [topic_permission(Operation.READ, "t")] if code == 3 else []
    error = response_error(client(), "do it", code, *needed, detail="why")
    assert type(error) is BrokerError
    assert str(error).endswith("(why)")


@pytest.mark.parametrize(
    ("permission", "words"),
    [
        pytest.param(topic_permission(Operation.READ, "t"), "Read --topic t", id="topic"),
        pytest.param(
            group_permission(Operation.DESCRIBE, "a b"), "Describe --group 'a b'", id="quoted"
        ),
        pytest.param(cluster_permission(Operation.ALTER), "Alter --cluster", id="cluster"),
        pytest.param(
            transaction_permission(Operation.WRITE, "x"),
            "Write --transactional-id x",
            id="transaction",
        ),
        pytest.param(
            Permission(Resource.TOPIC, "a.", Operation.CREATE, is_prefix=True),
            "Create --resource-pattern-type prefixed --topic a.",
            id="prefix",
        ),
        pytest.param(Permission(Resource.TOPIC, "*", Operation.READ), "Read --topic '*'", id="all"),
    ],
)
def test_the_command_that_grants_it(permission: Permission, words: str) -> None:
    command = grant_command(login("PLAIN", JAAS.format("m x")), permission)
    start = "kafka-acls.sh --bootstrap-server h1:9092 --add --allow-principal 'User:m x'"
    assert command == f"{start} --operation {words}"
    assert shlex.split(command)[5] == "User:m x"


def test_a_denial_can_name_the_stronger_permission() -> None:
    error = response_error(client(), "find 'g'", 30, group_permission(Operation.DESCRIBE, "g"))
    assert isinstance(error, DeniedError)
    text = str(needing(error, Operation.READ))
    assert "lacks READ on group 'g'" in text
    assert text.endswith("--operation Read --group g")


@pytest.mark.parametrize(
    ("config", "principal"),
    [
        pytest.param(client(), "User:ANONYMOUS", id="plain"),
        pytest.param(client(security_protocol="SSL"), "User:ANONYMOUS", id="no certificate"),
        pytest.param(login("PLAIN", JAAS.format("ann")), "User:ann", id="PLAIN"),
        pytest.param(login("SCRAM-SHA-512", JAAS.format("bob")), "User:bob", id="SCRAM"),
        pytest.param(
            login("GSSAPI", 'x.Krb5LoginModule required principal="mirror/host@REALM";'),
            "User:mirror",
            id="GSSAPI",
        ),
        pytest.param(
            login("OAUTHBEARER", 'x.OAuth required unsecuredLoginStringClaim_sub="cat";'),
            "User:cat",
            id="unsecured token",
        ),
        pytest.param(
            login("OAUTHBEARER", "x.OAuth required;"),
            "User:<of the OAUTHBEARER login>",
            id="a name that only the broker knows",
        ),
        pytest.param(
            login("PLAIN", "no jaas"), "User:<of the PLAIN login>", id="a line that is wrong"
        ),
    ],
)
def test_who_we_are(config: ClientConfig, principal: str) -> None:
    assert principal_of(config) == principal
