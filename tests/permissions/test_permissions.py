"""The documented permissions suffice, and each one that is missing has its message.

SPARKMIRROR_PERMISSIONS=all: also those whose lack goes unnoticed, and the same ones of other
features.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from itertools import pairwise
from pathlib import Path

import pytest

from sparkmirror.mirror.permissions import (
    ALTER,
    ALTER_CONFIGS,
    CLUSTER_NAME,
    CREATE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    EXISTS,
    NEEDS,
    NEW_BROKERS,
    NO_CHECKPOINTS,
    NO_HEARTBEATS,
    NO_STATES,
    NOT_LOOKED,
    READ,
    REMOTE_EXISTS,
    WRITE,
    Feature,
    Need,
    Operation,
    Permission,
    Resource,
    ResourceKind,
    consequence_without,
)
from sparkmirror.wire.access import describe_lack, grant_command
from sparkmirror.wire.principal import principal_of
from tests.permissions.guarded import Grant, Guarded
from tests.permissions.worlds import World, warnings_of

pytestmark = pytest.mark.kafka

DOCUMENT = Path(__file__).parents[2] / "docs" / "security.md"
ALL = os.environ.get("SPARKMIRROR_PERMISSIONS") == "all"

SOURCE = frozenset({"kept", "cut", "growth", "settings", "syncs", "map", "positions", "acls"})
NO_GROUP = consequence_without(Feature.CHECKPOINTS, ResourceKind.GROUPS, DESCRIBE)
COPY, CHECKPOINTS, GROUP_OFFSETS = Feature.COPY, Feature.CHECKPOINTS, Feature.GROUP_OFFSETS
# What is not done without a permission; all else is.
LOST: dict[tuple[Feature, ResourceKind, Operation], AbstractSet[str]] = {
    (COPY, ResourceKind.COPIED, READ): {"cut", "growth", "settings"},
    (COPY, ResourceKind.COPIED, DESCRIBE_CONFIGS): {"kept"},
    (COPY, ResourceKind.SYNCS, CREATE): {"syncs"},
    (COPY, ResourceKind.SYNCS, WRITE): {"syncs"},
    (COPY, ResourceKind.REMOTE, CREATE): {"kept"},
    (COPY, ResourceKind.REMOTE, WRITE): {"cut"},
    (COPY, ResourceKind.REMOTE, ALTER): {"growth"},
    (COPY, ResourceKind.OFFSET_MAP, CREATE): {"map"},
    (COPY, ResourceKind.OFFSET_MAP, WRITE): {"map"},
    (COPY, ResourceKind.OFFSETS, CREATE): SOURCE - {"acls"},
    (COPY, ResourceKind.OFFSETS, READ): {"kept", "cut", "syncs", "map"},
    (COPY, ResourceKind.OFFSETS, WRITE): {"positions"},
    (Feature.CONFIGS, ResourceKind.COPIED, DESCRIBE_CONFIGS): {"settings"},
    (Feature.CONFIGS, ResourceKind.REMOTE, ALTER_CONFIGS): {"settings"},
    (Feature.ACLS, ResourceKind.CLUSTER, DESCRIBE): {"acls"},
    (Feature.ACLS, ResourceKind.CLUSTER, ALTER): {"acls"},
}
IN_TURN = [
    need
    for need in NEEDS
    if need.feature not in (Feature.WORKER, Feature.DEDICATED)
    and need.unless != NEW_BROKERS
    # The same topic as that of the copy.
    and (need.feature, need.place) != (CHECKPOINTS, ResourceKind.OFFSETS)
    and (ALL or need.without != NOT_LOOKED)
    and (ALL or (need.feature, need.place) != (Feature.HEARTBEATS, ResourceKind.OFFSETS))
]

OF_A_NODE = [
    need for need in NEEDS if need.feature is Feature.DEDICATED and need.without != NOT_LOOKED
]


def named(need: Need) -> str:
    return f"{need.feature.value} {need.place.name} {need.operation.name}".replace(" ", "-")


@pytest.fixture
def world(guarded: Guarded, tmp_path: Path) -> World:
    return World(tmp_path, guarded)


def test_everything_works_with_exactly_the_documented_permissions(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.allow()
    world.run_source()
    world.run_checkpoints()
    world.run_heartbeats()
    assert world.run_group()
    assert world.messages == []
    assert _own_warnings(caplog) == []
    assert world.outcome() == SOURCE
    assert world.checkpoints() >= 2
    assert world.synced() == {world.kept, world.cut}
    assert world.heartbeats() > 0


def test_everything_works_with_the_commands_of_the_document(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.guarded.allow_only(grant for line in commands() for grant in granted(line, world))
    world.run_source()
    world.run_checkpoints()
    world.run_heartbeats()
    assert world.run_group()
    assert world.messages == []
    assert _own_warnings(caplog) == []
    assert world.outcome() == SOURCE - {"acls"}  # those of prefixes are not copied
    assert world.synced() == {world.kept, world.cut}


def _own_warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """All but what comes with every new cluster and with every end."""
    usual = ("COORDINATOR", "does not lead any more")
    messages = warnings_of(caplog.records)
    return [text for text in messages if not any(each in text for each in usual)]


@pytest.mark.parametrize("need", OF_A_NODE, ids=named)
def test_a_node_without_a_permission_says_what_it_cannot_do(
    need: Need, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    row = next(row for row in world.wanted() if row.need == need)
    (permission,) = row.permissions
    world.prepare(permission)
    world.allow([Grant(principal_of(row.client), permission)])
    assert world.run_group() == (need.without == NO_STATES)
    found = [*world.messages, *warnings_of(caplog.records)]
    texts = [text for text in found if describe_lack(row.client, permission) in text]
    assert any(need.without in text for text in texts), texts
    grant = f"; to allow it: {grant_command(row.client, permission)}"
    assert all(grant in text for text in texts)


def commands() -> list[list[str]]:
    """The words of each line with `acl` in the document."""
    text = DOCUMENT.read_text().replace("\\\n", "")
    found = [shlex.split(line) for line in text.splitlines() if line.startswith("acl ")]
    assert len(found) > 5
    return found


def granted(words: list[str], world: World) -> Iterator[Grant]:
    """What a line grants, in the world's names instead of the document's."""
    principal, is_prefix = words[2], "prefixed" in words
    pairs = list(pairwise(words))
    kinds = ("--topic", "--group", "--transactional-id")
    names = [(kind, name) for kind, name in pairs if kind in kinds]
    names += [("--cluster", CLUSTER_NAME)] if "--cluster" in words else []
    for kind, name in names:
        own = name.replace(".b.", f".{world.target}.").replace(".a.", f".{world.source}.")
        own = {"a.": f"{world.source}."}.get(own, own).replace("a-mm2", f"{world.source}-mm2")
        for option, operation in pairs:
            if option == "--operation":
                permission = Permission(Resource(kind[2:]), own, Operation(operation), is_prefix)
                yield Grant(principal, permission)


@pytest.mark.parametrize("need", IN_TURN, ids=named)
def test_a_missing_permission_is_named_and_the_rest_goes_on(
    need: Need, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    row = next(row for row in world.wanted() if row.need == need)
    missing = _one_of(row.permissions, need, world)
    world.prepare(missing)
    world.allow([Grant(principal_of(row.client), missing)])
    before = world.heartbeats()
    if need.feature is Feature.HEARTBEATS:
        world.run_heartbeats()
    else:
        world.run_source()
    if need.feature in (CHECKPOINTS, GROUP_OFFSETS):
        world.run_checkpoints()
    found = [*world.messages, *warnings_of(caplog.records)]
    if need.without == NOT_LOOKED:
        assert all("lacks DESCRIBE_CONFIGS" in text for text in found), found
    else:
        (text,) = {_cut(text) for text in found if describe_lack(row.client, missing) in text}
        assert need.without in text
        assert f"; to allow it: {grant_command(row.client, missing)}" in text
    _check_the_rest(need, world, before)


def _one_of(permissions: list[Permission], need: Need, world: World) -> Permission:
    """Of topics the one called cut, whose remote topic is there: so it is not created."""
    is_for_creating = need.unless in (EXISTS, REMOTE_EXISTS)
    topic = world.kept if is_for_creating else world.cut
    names = {topic, world.remote(topic)}
    return next(
        (permission for permission in permissions if permission.name in names), permissions[0]
    )


def _cut(text: str) -> str:
    """Without the flow before it, and what else is in the same line."""
    return text.partition("] ")[2] if text.startswith("[") else text


def _check_the_rest(need: Need, world: World, heartbeats_before: int) -> None:
    if need.feature is Feature.HEARTBEATS:
        is_written = world.heartbeats() > heartbeats_before
        assert is_written == (need.without != NO_HEARTBEATS)
        return
    lost = LOST.get((need.feature, need.place, need.operation), frozenset())
    assert world.outcome() == SOURCE - lost
    if need.feature is CHECKPOINTS:
        assert (world.checkpoints() > 1) == (need.without not in (NO_CHECKPOINTS, NO_GROUP))
    if need.feature is GROUP_OFFSETS:
        assert world.checkpoints() > 0
        assert world.synced() == (set() if need.place is ResourceKind.GROUPS else {world.kept})
