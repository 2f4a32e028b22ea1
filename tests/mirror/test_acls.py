"""Access rules on the target, with the cases of Kafka's MirrorSourceConnectorTest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.mirror.acls import (
    AclBinding,
    AclOperation,
    AclPermission,
    AclPlan,
    NotCopied,
    PatternType,
    ResourceType,
    plan_acls,
    target_binding,
    why_not_copied,
)
from sparkmirror.mirror.policy import DefaultReplicationPolicy, IdentityReplicationPolicy

DEFAULT = DefaultReplicationPolicy()
IDENTITY = IdentityReplicationPolicy("A")


def rule(
    permission: AclPermission = AclPermission.ALLOW,
    operation: AclOperation = AclOperation.READ,
    topic: str = "orders",
    pattern: PatternType = PatternType.LITERAL,
    resource: ResourceType = ResourceType.TOPIC,
) -> AclBinding:
    return AclBinding(resource, topic, pattern, "User:me", "10.0.0.1", operation, permission)


def accept_all(_topic: str) -> bool:
    return True


@pytest.mark.parametrize(
    ("permission", "operation", "expected"),
    [
        (AclPermission.ALLOW, AclOperation.WRITE, None),
        (AclPermission.ALLOW, AclOperation.ALL, AclOperation.READ),
        (AclPermission.ALLOW, AclOperation.READ, AclOperation.READ),
        (AclPermission.ALLOW, AclOperation.DESCRIBE, AclOperation.DESCRIBE),
        (AclPermission.ALLOW, AclOperation.DELETE, AclOperation.DELETE),
        (AclPermission.ALLOW, AclOperation.ALTER_CONFIGS, AclOperation.ALTER_CONFIGS),
        (AclPermission.DENY, AclOperation.ALL, AclOperation.ALL),
        (AclPermission.DENY, AclOperation.WRITE, AclOperation.WRITE),
        (AclPermission.DENY, AclOperation.READ, AclOperation.READ),
    ],
    ids=lambda value: value.name if value else "dropped",
)
def test_operation_on_the_target(
    permission: AclPermission, operation: AclOperation, expected: AclOperation | None
) -> None:
    plan = plan_acls([rule(permission, operation)], accept_all, DEFAULT, "A")
    if expected is None:
        assert plan.create == ()
        assert [reason for _, reason in plan.skipped] == [NotCopied.ALLOWS_WRITING]
    else:
        assert plan == AclPlan((rule(permission, expected, "A.orders"),), (), ())


@pytest.mark.parametrize(
    ("binding", "reason"),
    [
        (rule(), None),
        (rule(resource=ResourceType.GROUP), NotCopied.NO_TOPIC),
        (rule(resource=ResourceType.CLUSTER), NotCopied.NO_TOPIC),
        (rule(resource=ResourceType.TRANSACTIONAL_ID), NotCopied.NO_TOPIC),
        (rule(resource=ResourceType.DELEGATION_TOKEN), NotCopied.NO_TOPIC),
        (rule(pattern=PatternType.PREFIXED), NotCopied.NO_SINGLE_TOPIC),
        (rule(topic="secret"), NotCopied.TOPIC_NOT_COPIED),
        (rule(operation=AclOperation(99)), NotCopied.UNKNOWN_CODE),
        (rule(permission=AclPermission(99)), NotCopied.UNKNOWN_CODE),
    ],
    ids=lambda value: value.name if isinstance(value, NotCopied) else "",
)
def test_rule_is_copied_or_not(binding: AclBinding, reason: NotCopied | None) -> None:
    assert why_not_copied(binding, lambda topic: topic != "secret") is reason


@pytest.mark.parametrize(
    ("policy", "name"), [(DEFAULT, "A.*"), (IDENTITY, "*")], ids=["default", "identity"]
)
def test_rule_for_all_topics_is_treated_as_a_topic_and_told(
    policy: DefaultReplicationPolicy, name: str
) -> None:
    plan = plan_acls([rule(topic="*")], accept_all, policy, "A")
    assert plan == AclPlan((rule(topic=name),), (), (rule(topic=name),))


def test_rules_that_become_the_same_are_created_once() -> None:
    both = [rule(operation=AclOperation.ALL), rule(operation=AclOperation.READ)]
    assert plan_acls(both, accept_all, DEFAULT, "A").create == (rule(topic="A.orders"),)


def test_rules_that_exist_on_the_target_are_left_out() -> None:
    existing = [rule(topic="A.orders"), rule(topic="A.*")]
    bindings = [rule(), rule(topic="*"), rule(topic="new")]
    plan = plan_acls(bindings, accept_all, DEFAULT, "A", existing)
    assert plan == AclPlan((rule(topic="A.new"),), (), ())


@pytest.mark.parametrize(
    ("member", "code"),
    [
        (ResourceType.TOPIC, 2),
        (PatternType.LITERAL, 3),
        (PatternType.PREFIXED, 4),
        (AclOperation.ALL, 2),
        (AclOperation.WRITE, 4),
        (AclOperation.DESCRIBE_CONFIGS, 10),
        (AclPermission.DENY, 2),
        (AclPermission.ALLOW, 3),
    ],
)
def test_codes_are_those_of_the_protocol(member: int, code: int) -> None:
    assert member == code


def test_codes_of_later_brokers_are_unknown() -> None:
    assert ResourceType(77) is ResourceType.UNKNOWN
    assert AclOperation(77) is AclOperation.UNKNOWN


bindings = st.builds(
    AclBinding,
    st.sampled_from(ResourceType),
    st.sampled_from(["orders", "secret", "*"]),
    st.sampled_from(PatternType),
    st.sampled_from(["User:a", "User:*"]),
    st.sampled_from(["*", "10.0.0.1"]),
    st.sampled_from(AclOperation),
    st.sampled_from(AclPermission),
)


@given(st.lists(bindings, max_size=20), st.sampled_from([DEFAULT, IDENTITY]))
def test_no_rule_lets_anyone_write_and_every_rule_is_explained(
    found: list[AclBinding], policy: DefaultReplicationPolicy
) -> None:
    plan = plan_acls(found, lambda topic: topic != "secret", policy, "A")
    may_write = {AclOperation.WRITE, AclOperation.ALL}
    assert not [
        acl
        for acl in plan.create
        if acl.permission is AclPermission.ALLOW and acl.operation in may_write
    ]
    skipped = {binding for binding, _ in plan.skipped}
    copied = {target_binding(b, policy, "A") for b in found if b not in skipped}
    assert copied == set(plan.create)
    assert plan_acls(found, lambda topic: topic != "secret", policy, "A", plan.create).create == ()
    assert all(
        (acl.principal, acl.host) in {(b.principal, b.host) for b in found} for acl in plan.create
    )
    assert all(acl.pattern_type is PatternType.LITERAL for acl in plan.create)
