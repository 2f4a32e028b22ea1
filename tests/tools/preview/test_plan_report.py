"""How a plan is printed."""

from __future__ import annotations

import pytest

from sparkmirror.mirror.admin_types import AclRule, NewTopic
from sparkmirror.tools.preview.plan_report import FlowGroups, GroupWrite, MirrorPlan
from sparkmirror.tools.preview.rehearsed_cluster import RehearsedCluster, SettingChange
from sparkmirror.types import TopicPartition

RULE = AclRule(2, "a.orders", 3, "User:app", "*", 3, 3)


def full_plan() -> MirrorPlan:
    cluster = RehearsedCluster(
        "b",
        created={
            "a.users": NewTopic("a.users", 1, 3, {"cleanup.policy": "compact"}),
            "a.auto": NewTopic("a.auto", -1, -1),
        },
        grown={"a.orders": (2, 4)},
        altered={
            "a.orders": {"x": SettingChange("1", None), "retention.ms": SettingChange("5", "6")}
        },
        acls=[RULE],
    )
    write = GroupWrite("billing", {TopicPartition("a.orders", 0): (None, 7)})
    groups = FlowGroups("a->b", "b", (write,), ("late",), {"used": "it has members"}, ("billing",))
    clusters = (RehearsedCluster("a"), cluster)
    return MirrorPlan("mm2.properties", ("a->b",), clusters, (groups,), ("careful",), ("broken",))


def test_it_looks_like_a_diff() -> None:
    assert "\n".join(full_plan().lines()) == (
        "cluster 'b'\n"
        "  + topic a.auto: the cluster's default number of partitions, replication factor of the "
        "cluster\n"
        "  + topic a.users: 1 partition, replication factor 3\n"
        "      cleanup.policy = compact\n"
        "  ~ topic a.orders: 2 -> 4 partitions\n"
        "  ~ topic a.orders\n"
        "      ~ retention.ms = 5 -> 6\n"
        "      - x = 1 (back to the cluster's default)\n"
        "  + ACL: ALLOW READ on topic 'a.orders' for 'User:app' from *\n"
        "  ~ group billing\n"
        "      ~ a.orders-0: none -> 7\n"
        "\n"
        "a->b: 1 group gets checkpoints\n"
        "  written as soon as their records are copied: late\n"
        "  not written: used: it has members\n"
        "\n"
        "warning: careful\n"
        "problem: broken\n"
        "mm2.properties (a->b): 2 topics to create, 1 topic to grow, 2 settings to change, 1 ACL "
        "to create, 1 group to write; nothing was written"
    )


def test_every_change_is_a_row_of_json() -> None:
    found = full_plan().as_json()
    rows = [(row["cluster"], row["action"], row["kind"], row["name"]) for row in found["changes"]]
    assert rows == [
        ("b", "create", "topic", "a.auto"),
        ("b", "create", "topic", "a.users"),
        ("b", "grow", "topic", "a.orders"),
        ("b", "set", "config", "a.orders"),
        ("b", "reset", "config", "a.orders"),
        ("b", "create", "acl", "a.orders"),
        ("b", "write", "group", "billing"),
    ]
    assert full_plan().change_count == len(rows)
    assert found["changes"][0]["partitions"] is None
    assert found["groups"][0]["not_written"] == {"used": "it has members"}


@pytest.mark.parametrize("flows", [(), ("a->b",)])
def test_nothing_to_do(flows: tuple[str, ...]) -> None:
    plan = MirrorPlan("f", flows, (RehearsedCluster("a"),))
    (line,) = plan.lines()
    assert "nothing to do" in line
    assert plan.change_count == 0
