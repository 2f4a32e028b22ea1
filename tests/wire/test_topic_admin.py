"""Settings and ACLs of topics: requests, and what becomes of their responses; no broker."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, cast

import pytest
from kafka.protocol.admin import (
    CreateAclsResponse,
    DescribeAclsResponse,
    DescribeConfigsResponse,
    IncrementalAlterConfigsResponse,
)
from kafka.protocol.metadata import MetadataResponse

from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import BrokerError
from sparkmirror.wire.admin import admin_client
from sparkmirror.wire.admin.admin import (
    AclRule,
    Admin,
    ConfigChange,
    NewTopic,
    TopicSetting,
    TopicView,
    _id_bytes,
)

DENIED = 29
TOPIC = MetadataResponse.MetadataResponseTopic
PARTITION = TOPIC.MetadataResponsePartition(partition_index=0)


class Scripted(Admin):
    """Responses come from a function; requests pass through their bytes first."""

    def __init__(self, response: Callable[[Any], Any]) -> None:
        self._config = ClientConfig("a", ("h:1",))
        self._alias = "a"
        self._response = response
        self.requests: list[Any] = []

    def _speaks(self, request: Any) -> bool:
        del request
        return True

    def _send(self, what: str, request: Any, node_id: int | None = None) -> Any:
        kind = type(request)
        version = kind.max_version
        self.requests.append(kind.decode(request.encode(version=version), version=version))
        return self._response(self.requests[-1])


class Controller:
    """Creates topics; another client has just created `taken`."""

    def create_topics(self, wanted: dict[str, Any], **_: object) -> dict[str, Any]:
        codes = {"taken": 36, "denied": DENIED}
        rows = [{"name": name, "error_code": codes.get(name, 0)} for name in wanted]
        return {"topics": rows}


def test_only_the_creator_logs_a_created_topic(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    admin = Scripted(lambda _: None)
    admin._client = cast("Any", Controller())
    admin._timeout_ms = 1000
    outcome = admin.create_topics([NewTopic(name, 1, 1) for name in ("new", "taken", "denied")])
    assert (outcome["new"], outcome["taken"]) == (None, None)
    assert isinstance(outcome["denied"], BrokerError)
    assert caplog.messages == ["created topic 'new' on 'a'"]


def described(request: Any) -> Any:
    """Every topic has one setting, but for `secret`."""
    return DescribeConfigsResponse(
        results=[
            RESULT(DENIED, "no", 2, resource.resource_name, [])
            if resource.resource_name == "secret"
            else RESULT(0, None, 2, resource.resource_name, [RETENTION])
            for resource in request.resources
        ]
    )


ALTERED = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
RESULT = DescribeConfigsResponse.DescribeConfigsResult
RETENTION = RESULT.DescribeConfigsResourceResult(
    name="retention.ms", value="5", read_only=False, config_source=1, is_sensitive=True
)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("00010203-0405-0607-0809-0a0b0c0d0e0f", bytes(range(16))),
        (uuid.UUID(bytes=bytes(range(16))), bytes(range(16))),
        ("00000000-0000-0000-0000-000000000000", b""),
        (None, b""),
    ],
    ids=["text", "uuid", "zeros", "none"],
)
def test_ids_of_topics_are_the_bytes_that_tasks_store(given: Any, expected: bytes) -> None:
    assert _id_bytes(given) == expected


def listed(request: Any) -> Any:
    """Two topics, one of Kafka's own, and one that may not be seen."""
    rows = [
        TOPIC(error_code=0, name="t", topic_id=uuid.UUID(int=5), partitions=[PARTITION] * 3),
        TOPIC(error_code=0, name="u", topic_id=uuid.UUID(int=0), partitions=[PARTITION]),
        TOPIC(error_code=0, name="__offsets", is_internal=True, partitions=[PARTITION]),
        TOPIC(error_code=DENIED, name="secret", partitions=[]),
    ]
    asked = None if request.topics is None else {row.name for row in request.topics}
    return MetadataResponse(topics=[row for row in rows if asked is None or row.name in asked])


def test_topics_are_listed_without_what_only_their_authorizer_knows() -> None:
    admin = Scripted(listed)
    assert admin.list_topics() == {
        "t": TopicView(3, uuid.UUID(int=5).bytes),
        "u": TopicView(1, b""),
    }
    [request] = admin.requests
    assert request.topics is None
    assert not request.include_topic_authorized_operations
    assert not request.allow_auto_topic_creation


@pytest.mark.parametrize(
    ("name", "partitions"), [("t", 3), ("u", 1), ("__offsets", None), ("secret", None)]
)
def test_of_one_topic_only_that_one_is_asked_about(name: str, partitions: int | None) -> None:
    admin = Scripted(listed)
    view = admin.view_topic(name)
    assert (view and view.partitions) == partitions
    assert [[row.name for row in request.topics] for request in admin.requests] == [[name]]


@pytest.mark.parametrize(
    ("counts", "parts"),
    [
        ([], []),
        ([-1] * 1200, [500, 500, 200]),
        ([10] * 450, [200, 200, 50]),
        ([25, 5000, 25, 1975, 1], [1, 1, 2, 1]),
    ],
    ids=["none", "defaults", "many", "large"],
)
def test_no_request_makes_more_partitions_than_a_controller_accepts(
    counts: list[int], parts: list[int]
) -> None:
    made = list(admin_client.in_parts(counts, lambda count: count))
    assert [len(part) for part in made] == parts
    assert [count for part in made for count in part] == counts


def test_topics_are_described_one_by_one_in_their_response() -> None:
    admin = Scripted(described)
    found = admin.describe_topic_configs(["t", "secret"])
    assert found["t"] == [TopicSetting("retention.ms", "5", 1, read_only=False, sensitive=True)]
    error = found["secret"]
    assert isinstance(error, BrokerError)
    assert str(error) == (
        "describe configs of topic 'secret' on 'a': TOPIC_AUTHORIZATION_FAILED: User:ANONYMOUS "
        "lacks DESCRIBE_CONFIGS on topic 'secret' of cluster 'a'; to allow it: kafka-acls.sh "
        "--bootstrap-server h:1 --add --allow-principal User:ANONYMOUS --operation DescribeConfigs "
        "--topic secret"
    )
    (request,) = admin.requests
    rows = [(r.resource_type, r.resource_name, r.configuration_keys) for r in request.resources]
    assert rows == [(2, "t", None), (2, "secret", None)]


def test_many_topics_are_several_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_client, "MOST_PARTS", 2)
    admin = Scripted(described)
    assert list(admin.describe_topic_configs("abcde")) == list("abcde")
    sent = [[r.resource_name for r in request.resources] for request in admin.requests]
    assert sent == [["a", "b"], ["c", "d"], ["e"]]


def test_nothing_is_asked_about_no_topics() -> None:
    admin = Scripted(described)
    assert admin.describe_topic_configs([]) == {}
    assert admin.alter_topic_configs({}) == {}
    assert admin.create_acls([]) == {}
    assert admin.requests == []


def test_changes_have_an_outcome_for_each_topic() -> None:
    admin = Scripted(
        lambda _: IncrementalAlterConfigsResponse(
            responses=[ALTERED(0, None, 2, "t"), ALTERED(40, "bad value", 2, "u")]
        )
    )
    changes = {
        "t": [ConfigChange("retention.ms", 0, "5"), ConfigChange("segment.ms", 1, None)],
        "u": [ConfigChange("retention.ms", 0, "x")],
    }
    outcome = admin.alter_topic_configs(changes)
    assert outcome["t"] is None
    assert str(outcome["u"]) == "alter configs of topic 'u' on 'a': INVALID_CONFIG (bad value)"
    (request,) = admin.requests
    assert request.validate_only is False
    sent = {
        row.resource_name: [
            ConfigChange(each.name, each.config_operation, each.value) for each in row.configs
        ]
        for row in request.resources
    }
    assert sent == changes


RULE = AclRule(2, "t", 3, "User:ann", "*", 3, 3)
RESOURCE = DescribeAclsResponse.DescribeAclsResource
CREATED = CreateAclsResponse.AclCreationResult


def test_all_rules_about_topics_are_asked_for() -> None:
    acls = [("User:ann", "*", 3, 3), ("User:bob", "10.0.0.1", 99, 2)]
    admin = Scripted(
        lambda _: DescribeAclsResponse(
            error_code=0,
            resources=[RESOURCE(2, "t", 3, [RESOURCE.AclDescription(*each) for each in acls])],
        )
    )
    assert admin.describe_topic_acls() == [RULE, AclRule(2, "t", 3, "User:bob", "10.0.0.1", 99, 2)]
    (request,) = admin.requests
    kinds = (request.resource_type_filter, request.pattern_type_filter, request.operation)
    assert (*kinds, request.permission_type) == (2, 1, 1, 1)
    names = (request.resource_name_filter, request.principal_filter, request.host_filter)
    assert names == (None, None, None)


def test_a_cluster_without_authorizer_has_no_rules() -> None:
    admin = Scripted(lambda _: DescribeAclsResponse(error_code=54, error_message="no authorizer"))
    assert admin.describe_topic_acls() is None


def test_a_cluster_that_does_not_show_its_rules() -> None:
    admin = Scripted(lambda _: DescribeAclsResponse(error_code=31, error_message=None))
    with pytest.raises(BrokerError, match="describe ACLs on 'a': CLUSTER_AUTHORIZATION_FAILED"):
        admin.describe_topic_acls()


def test_rules_have_an_outcome_each() -> None:
    refused = RULE._replace(principal="bob")
    admin = Scripted(
        lambda _: CreateAclsResponse(results=[CREATED(0, None), CREATED(42, "no such type")])
    )
    outcome = admin.create_acls([RULE, refused])
    assert outcome[RULE] is None
    assert str(outcome[refused]) == (
        "create an ACL of 'bob' for 't' on 'a': INVALID_REQUEST (no such type)"
    )
    (request,) = admin.requests
    sent = [
        AclRule(
            each.resource_type,
            each.resource_name,
            each.resource_pattern_type,
            each.principal,
            each.host,
            each.operation,
            each.permission_type,
        )
        for each in request.creations
    ]
    assert sent == [RULE, refused]
