"""Rounds of ACL sync over fake clusters."""

from __future__ import annotations

from typing import cast

import pytest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.connect.source.acl_sync import AclSync
from sparkmirror.errors import KafkaError
from sparkmirror.mirror.acls import AclOperation, AclPermission, PatternType, ResourceType
from sparkmirror.mirror.permissions import Operation, cluster_permission
from sparkmirror.mirror.policy import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
)
from sparkmirror.types import FlowName
from sparkmirror.wire.access import response_error
from sparkmirror.wire.admin.admin import AclRule, Admin
from sparkmirror.wire.protocol.error_codes import broker_error
from tests.connect.fakes import FakeAdmin

ALL, READ, WRITE = AclOperation.ALL, AclOperation.READ, AclOperation.WRITE


def allow(topic: str, operation: int, pattern: int = PatternType.LITERAL) -> AclRule:
    return AclRule(
        ResourceType.TOPIC, topic, pattern, "User:ann", "*", operation, AclPermission.ALLOW
    )


class Clusters:
    """Both clusters with authorizers, and the sync between them: of topics that begin with t."""

    def __init__(self, policy: ReplicationPolicy | None = None) -> None:
        self.source, self.target = FakeAdmin(), FakeAdmin()
        self.source.acls, self.target.acls = [], []
        self._sync = AclSync(
            FlowName("a", "b"),
            policy or DefaultReplicationPolicy(),
            lambda topic: topic.startswith(("t", "*")),
            cast("Admin", self.source),
            cast("Admin", self.target),
        )

    def sync(self, *rules: AclRule) -> list[AclRule] | None:
        """One round with these rules on the source; the rules of the target afterwards."""
        if rules:
            self.source.acls = list(rules)
        self._sync.sync()
        return self.target.acls


@pytest.fixture
def clusters() -> Clusters:
    return Clusters()


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param(allow("t", READ), [allow("a.t", READ)], id="reading"),
        pytest.param(allow("t", ALL), [allow("a.t", READ)], id="all becomes reading"),
        pytest.param(allow("t", WRITE), [], id="writing"),
        pytest.param(allow("t", READ, PatternType.PREFIXED), [], id="prefixed"),
        pytest.param(allow("x", READ), [], id="a topic that is not copied"),
        pytest.param(allow("t", 99), [], id="an operation of later brokers"),
        pytest.param(
            allow("t", WRITE)._replace(permission=AclPermission.DENY),
            [allow("a.t", WRITE)._replace(permission=AclPermission.DENY)],
            id="denied writing",
        ),
    ],
)
def test_a_rule_is_copied(clusters: Clusters, rule: AclRule, expected: list[AclRule]) -> None:
    assert clusters.sync(rule) == expected


def test_rules_that_are_there_are_not_created_again(
    clusters: Clusters, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    clusters.target.acls = [allow("other", READ), allow("a.t", READ)]
    for _ in range(2):
        clusters.sync(allow("t", READ), allow("tt", READ))
    assert clusters.target.acls == [allow("other", READ), allow("a.t", READ), allow("a.tt", READ)]
    assert caplog.messages == ["[a->b] created an ACL: ALLOW READ on 'a.tt' for 'User:ann' from *"]


def test_a_rule_that_is_gone_from_the_source_stays(clusters: Clusters) -> None:
    clusters.sync(allow("t", READ))
    clusters.source.acls = []
    assert clusters.sync() == [allow("a.t", READ)]


@pytest.mark.parametrize(
    ("policy", "name", "text"),
    [
        (DefaultReplicationPolicy(), "a.*", "becomes one for 'a.*' on 'b', which no topic is"),
        (IdentityReplicationPolicy("a"), "*", "becomes one for all topics of 'b', whoever they"),
    ],
    ids=["default", "identity"],
)
def test_a_rule_for_all_topics_is_warned_of_once(
    policy: ReplicationPolicy, name: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    clusters = Clusters(policy)
    for _ in range(2):
        assert clusters.sync(allow("*", READ)) == [allow(name, READ)]
    (warning,) = caplog.messages
    assert f"the ACL of 'User:ann' for all topics of 'a' {text}" in warning


def test_a_source_without_authorizer_is_mentioned_once(
    clusters: Clusters, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "sparkmirror")
    clusters.source.acls = None
    for _ in range(3):
        clusters.sync()
    assert [record.levelname for record in caplog.records] == ["INFO", "DEBUG", "DEBUG"]
    assert "consider disabling ACL sync: set sync.topic.acls.enabled=false" in caplog.messages[0]


def test_a_target_without_authorizer_is_warned_of_once(
    clusters: Clusters, caplog: pytest.LogCaptureFixture
) -> None:
    clusters.target.acls = None
    clusters.sync()
    assert caplog.messages == []
    for _ in range(2):
        clusters.sync(allow("t", READ), allow("t", WRITE))
    assert caplog.messages == [
        "[a->b] 'b' has no authorizer: 1 ACLs are not copied; set sync.topic.acls.enabled=false"
    ]


def test_a_rule_that_the_target_refuses_is_said_once_and_the_others_are_created(
    clusters: Clusters, caplog: pytest.LogCaptureFixture
) -> None:
    clusters.target.refuses["a.t"] = broker_error("create an ACL of 'User:ann' for 'a.t'", 42)
    for _ in range(2):
        assert clusters.sync(allow("t", READ), allow("tt", READ)) == [allow("a.tt", READ)]
    (warning,) = caplog.messages
    assert warning == (
        "[a->b] create an ACL of 'User:ann' for 'a.t': INVALID_REQUEST; not created: ALLOW READ "
        "on 'a.t' for 'User:ann' from *"
    )


@pytest.mark.parametrize(("side", "right"), [("source", "DESCRIBE"), ("target", "ALTER")])
def test_a_cluster_that_does_not_tell_its_rules_says_what_to_allow(
    clusters: Clusters, side: str, right: str
) -> None:
    needed = cluster_permission(Operation[right])
    denial = response_error(ClientConfig("x", ("h:1",)), "describe ACLs on 'x'", 31, needed)
    getattr(clusters, side).acl_errors.append(denial)
    with pytest.raises(KafkaError) as raised:
        clusters.sync(allow("t", READ))
    assert str(raised.value) == (
        "describe ACLs on 'x': CLUSTER_AUTHORIZATION_FAILED: User:ANONYMOUS lacks "
        f"{right} on cluster 'x'; no ACLs are copied, everything else is; if you need "
        "none, set sync.topic.acls.enabled=false; to allow it: kafka-acls.sh "
        "--bootstrap-server h:1 --add --allow-principal User:ANONYMOUS "
        f"--operation {right.capitalize()} --cluster"
    )
