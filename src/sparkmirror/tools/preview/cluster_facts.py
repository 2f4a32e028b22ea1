"""What clusters say about one topic or group, for its explanation. A silent cluster is no error.

Runs on: any machine; writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches

from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.mirror_configs import CheckpointConfig, SourceConfig
from sparkmirror.connect.checkpoint.group_preview import preview_groups
from sparkmirror.connect.naming import some_names
from sparkmirror.errors import ConfigError, ConfigErrors, KafkaError, MirrorError
from sparkmirror.mirror.explaining.group_rules import GroupFacts
from sparkmirror.mirror.explaining.topic_rules import TopicFacts
from sparkmirror.mirror.filters import make_topic_filter
from sparkmirror.mirror.group_offsets import GroupListing
from sparkmirror.mirror.policy import flow_policy
from sparkmirror.mirror.topics import should_replicate_topic
from sparkmirror.wire.admin.admin import Admin, AnyAdmin
from sparkmirror.wire.admin.group_admin import GroupAdmin

# A user waits; without a response the explanation only has fewer facts.
TIMEOUT_MS = 10_000
MOST_NAMES = 3


@dataclass(frozen=True, slots=True)
class Asked:
    """What was learned: `notes` say which cluster did not respond, and which names are similar."""

    notes: tuple[str, ...] = ()
    topic: TopicFacts = field(default_factory=TopicFacts)
    group: GroupFacts = field(default_factory=GroupFacts)


def not_asked(unresolved: Sequence[str]) -> Asked:
    """Where clusters cannot be asked; says so if that is because of placeholders."""
    if not unresolved:
        return Asked()
    names = some_names(unresolved)
    return Asked((f"no cluster was asked: only the worker can resolve placeholders of {names}",))


def ask_about_topic(config: SourceConfig, topic: str) -> Asked:
    """Whether the clusters have the topic and its remote topic."""
    notes: list[str] = []
    with _admin(Admin, config.source_client, config.admin_timeout_ms, notes) as source:
        shown = {} if source is None else source.list_topics()
    counts = None if source is None else {name: view.partitions for name, view in shown.items()}
    remote = flow_policy(config).format_remote_topic(config.source_alias, topic)
    with _admin(Admin, config.target_client, config.admin_timeout_ms, notes) as target:
        view = None if target is None else target.view_topic(remote)
    if counts is not None and topic not in counts:
        notes += _similar(topic, counts, config.source_alias)
    facts = TopicFacts(
        None if counts is None else counts.get(topic, 0),
        None if target is None else (view.partitions if view else 0),
        same_remote="" if counts is None else _same_remote(config, topic, remote, counts),
    )
    return Asked(tuple(notes), topic=facts)


def ask_about_group(config: CheckpointConfig, group: str) -> Asked:
    """What the group committed, whether that can be translated, and what the target has."""
    notes: list[str] = []
    source_client, target_client = config.source_client, config.target_client
    timeout_ms = config.admin_timeout_ms
    facts = GroupFacts()
    with (
        _admin(GroupAdmin, source_client, timeout_ms, notes) as source,
        _admin(GroupAdmin, target_client, timeout_ms, notes) as target,
    ):
        if source is None:
            return Asked(tuple(notes))
        listed = {each.group_id: each for each in source.list_groups()}
        found = listed.get(group)
        if found is None:
            notes += _similar(group, listed, config.source_alias)
            return Asked(tuple(notes), group=GroupFacts(is_listed=False))
        listing = GroupListing(found.group_id, found.protocol_type, found.type)
        response = source.committed_offsets([group])[group]
        if isinstance(response, KafkaError):
            notes.append(str(response))
        committed = None if isinstance(response, KafkaError) else tuple(response)
        facts = GroupFacts(listing, True, committed)
        if target is not None and config.is_on:
            preview = preview_groups(config, source, target).get(group)
            if preview is not None:
                facts = GroupFacts(listing, True, committed, preview.skipped, preview.plan)
    return Asked(tuple(notes), group=facts)


@contextmanager
def _admin(
    kind: type[AnyAdmin], client: ClientConfig, timeout_ms: int, notes: list[str]
) -> Iterator[AnyAdmin | None]:
    """A connection, or None and a note about why there is none."""
    try:
        admin = kind(client, min(timeout_ms, TIMEOUT_MS))
    except (KafkaError, ConfigError, ConfigErrors) as error:
        notes.append(f"'{client.alias}' was not asked: {error}")
        yield None
        return
    try:
        yield admin
    except MirrorError as error:
        raise KafkaError(f"ask '{client.alias}': {error}") from error
    finally:
        admin.close()


def _same_remote(config: SourceConfig, topic: str, remote: str, counts: Iterable[str]) -> str:
    """Another topic that is copied to the same remote topic, and comes first."""
    policy, topic_filter = flow_policy(config), make_topic_filter(config)
    for other in counts:
        if other == topic:
            return ""
        is_same = policy.format_remote_topic(config.source_alias, other) == remote
        if is_same and should_replicate_topic(
            other,
            topic_filter,
            policy,
            heartbeats_replication_enabled=config.heartbeats_replication_enabled,
            source_alias=config.source_alias,
            target_alias=config.target_alias,
        ):
            return other
    return ""


def _similar(name: str, names: Iterable[str], alias: str) -> list[str]:
    close = get_close_matches(name, list(names), MOST_NAMES)
    shown = " or ".join(f"'{each}'" for each in close)
    return [f"'{alias}' has no '{name}'; did you mean {shown}?"] if close else []
