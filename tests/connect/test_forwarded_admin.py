"""Changes that go through a class of the user's own, and what its answers become."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self, cast
from unittest import mock

import pytest

from sparkmirror.connect.forwarded_admin import ForwardedAdmin, forwarded
from sparkmirror.connect.heartbeat.mirror_heartbeat_task import MirrorHeartbeatTask
from sparkmirror.errors import BrokerError, ConfigError, KafkaError
from sparkmirror.mirror.forwarding_admin import AclRule, ConfigChange, ForwardingAdmin, NewTopic
from sparkmirror.wire.admin import admin_client
from sparkmirror.wire.admin.admin import Admin
from tests.connect.fakes import Connector, FakeAdmin
from tests.connect.local_checkpoints import LocalCheckpoints
from tests.connect.local_source import LocalSource
from tests.flows import make_flow

HERE = __name__
RULE = AclRule(2, "t", 3, "User:x", "*", 3, 3)


class Noted(ForwardingAdmin):
    """Notes what it is asked, and asks the cluster."""

    calls: list[tuple[str, str, object]] = []  # noqa: RUF012 - shared by all that a test makes
    prefix = ""

    @classmethod
    def from_settings(cls, props: Mapping[str, str], cluster: Any) -> Self:
        made = super().from_settings(props, cluster)
        made.prefix = props.get("my.prefix", "")
        return made

    def create_topics(self, topics: Sequence[NewTopic]) -> Mapping[str, Any]:
        self.calls += [("topic", self.cluster.alias, topic.name) for topic in topics]
        return super().create_topics(topics)

    def create_partitions(self, counts: Mapping[str, int]) -> Mapping[str, Any]:
        self.calls += [("grow", self.cluster.alias, name) for name in counts]
        return super().create_partitions(counts)

    def alter_topic_configs(
        self, changes: Mapping[str, Sequence[ConfigChange]]
    ) -> Mapping[str, Any]:
        self.calls += [("alter", self.cluster.alias, name) for name in changes]
        return super().alter_topic_configs(changes)

    def create_acls(self, rules: Sequence[AclRule]) -> Mapping[AclRule, Any]:
        self.calls += [("acl", self.cluster.alias, rule.resource_name) for rule in rules]
        return super().create_acls(rules)


class Refusing(ForwardingAdmin):
    """Says of each topic something else."""

    def create_topics(self, topics: Sequence[NewTopic]) -> Mapping[str, Any]:
        return {"text": "order it elsewhere", "error": ValueError("bad name"), "done": None}


class Failing(ForwardingAdmin):
    """Raises whatever it likes."""

    def create_topics(self, topics: Sequence[NewTopic]) -> Mapping[str, Any]:
        raise LookupError("no such team")


class Ending(ForwardingAdmin):
    """Wants to end the program."""

    def create_topics(self, topics: Sequence[NewTopic]) -> Mapping[str, Any]:
        sys.exit(3)


class NoForwarding:
    """Has the method that it is made with, and nothing else."""

    @classmethod
    def from_settings(cls, props: Mapping[str, str], cluster: object) -> Self:
        return cls()


@pytest.fixture(autouse=True)
def calls() -> list[tuple[str, str, object]]:
    Noted.calls.clear()
    return Noted.calls


def settings(name: str) -> dict[str, str]:
    return {"a->b.forwarding.admin.class": f"{HERE}:{name}", "a->b.my.prefix": "p"}


def through(folder: Path, name: str) -> ForwardedAdmin:
    config = make_flow(folder, settings(name)).source
    admin = FakeAdmin()
    admin.alias = "b"
    made = forwarded(cast("Admin", admin), config)
    return cast("ForwardedAdmin", made)


def test_kafkas_own_class_is_the_admin_itself(tmp_path: Path) -> None:
    admin = cast("Admin", FakeAdmin())
    assert forwarded(admin, make_flow(tmp_path).source) is admin


def test_every_change_goes_through_and_everything_else_does_not(
    tmp_path: Path, calls: list[tuple[str, str, object]]
) -> None:
    admin = through(tmp_path, "Noted")
    fake = cast("FakeAdmin", admin._admin)
    fake.acls = []
    assert cast("Noted", admin._user).prefix == "p"
    assert admin.create_topics([NewTopic("t", 1, 1)]) == {"t": None}
    assert admin.create_partitions({"t": 3}) == {"t": None}
    assert admin.create_partitions({}) == {}
    assert admin.alter_topic_configs({"t": [ConfigChange("retention.ms", 0, "5")]}) == {"t": None}
    assert admin.create_acls([RULE]) == {RULE: None}
    assert calls == [(kind, "b", "t") for kind in ("topic", "grow", "alter", "acl")]
    assert fake.topics["t"].partitions == 3
    assert admin.list_topics() == fake.topics
    assert admin.describe_topic_acls() == [RULE]


def test_outcomes_become_errors_and_silence_is_no_success(tmp_path: Path) -> None:
    names = ("text", "error", "done", "forgotten")
    found = through(tmp_path, "Refusing").create_topics([NewTopic(n, 1, 1) for n in names])
    assert found["done"] is None
    assert all(isinstance(found[name], BrokerError) for name in ("text", "error", "forgotten"))
    who = f"forwarding.admin.class={HERE}:Refusing"
    assert str(found["text"]) == f"create topic 'text' on 'b' by {who}: order it elsewhere"
    assert "bad name" in str(found["error"])
    assert "does not say whether it was done" in str(found["forgotten"])


@pytest.mark.parametrize(
    ("name", "expected", "text"),
    [("Failing", KafkaError, "LookupError: no such team"), ("Ending", ConfigError, "SystemExit")],
)
def test_what_the_class_raises_is_an_error_of_ours(
    tmp_path: Path, name: str, expected: type[Exception], text: str
) -> None:
    with pytest.raises(expected, match=text):
        through(tmp_path, name).create_topics([NewTopic("t", 1, 1)])


@pytest.mark.parametrize("name", ["NoForwarding", "Missing"])
def test_a_class_that_is_no_forwarding_admin_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"forwarding\.admin\.class=.*subclass of sparkmirror"):
        through(tmp_path, name)


def test_every_connector_opens_its_admins_through_the_class(tmp_path: Path) -> None:
    flow = make_flow(tmp_path, settings("Noted"))
    source, checkpoint = LocalSource(flow), LocalCheckpoints(flow)
    heartbeat = MirrorHeartbeatTask(flow.spec(flow.heartbeat))
    with (
        mock.patch.object(admin_client, "check_reachable"),
        mock.patch.object(admin_client, "_AdminClient"),
    ):
        for connector in (source, checkpoint, heartbeat):
            connector.connect()
    made = [*source._admins, *checkpoint._admins, heartbeat._admin]
    assert len(made) == 5
    assert {type(admin).__name__ for admin in made} == {ForwardedAdmin.__name__}


def test_a_refresh_creates_remote_topics_through_it(
    tmp_path: Path, calls: list[tuple[str, str, object]]
) -> None:
    connector = Connector(tmp_path, settings("Noted") | {"a->b.topics": "t"})
    for alias, admin in (("a", connector.source), ("b", connector.target)):
        admin.alias = alias
    connector._use(*(forwarded(admin, connector.config) for admin in connector._admins))
    connector.source.add("t", 2)
    connector.refresh()
    connector.source.add("t", 3)
    connector.refresh()
    connector._create_internal_topics()
    assert ("topic", "b", "a.t") in calls
    assert ("grow", "b", "a.t") in calls
    assert ("topic", "a", "mm2-offset-syncs.b.internal") in calls
