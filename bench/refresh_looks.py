"""Checks whether the target of a refresh run has all data: topics, settings, records, groups.

The mirror and these checks share the cores. So nothing that was found is requested again, and only
a part of what is missing is requested at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException
from confluent_kafka.admin import ConfigResource

from bench.end_offsets import EndOffsets
from bench.systems import Flow
from sparkmirror.config.clients import ClientConfig
from sparkmirror.demo.client import RESPONSE_SECONDS, admin_client
from sparkmirror.demo.reading import read_topic
from sparkmirror.embedded import KafkaCluster
from sparkmirror.errors import KafkaError
from sparkmirror.mirror.records import Checkpoint
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.group_admin import GroupAdmin

RECORDS = 2
# Every group's committed offset in its topic. With one offset sync, which is for the first record,
# MirrorMaker 2 translates this offset exactly too.
COMMITTED = 1
OWN_SETTINGS = {"retention.ms": "259200000"}
_ADMIN_MS = 30_000
_AT_A_TIME = 50


@dataclass(frozen=True, slots=True)
class RefreshNames:
    """The data of the source: topics, those with their own settings, the topic of each group."""

    topics: tuple[str, ...]
    with_settings: tuple[str, ...]
    groups: Mapping[str, str]


def group_admin(cluster: KafkaCluster) -> GroupAdmin:
    """An admin client that requests many groups at once."""
    return GroupAdmin(ClientConfig("bench", tuple(cluster.bootstrap_servers.split(","))), _ADMIN_MS)


def drop_found(missing: list[str], are_there: Callable[[Sequence[str]], bool]) -> bool:
    """Remove what exists now from `missing`; returns whether nothing is missing any more."""
    while missing and are_there(missing[:_AT_A_TIME]):
        del missing[:_AT_A_TIME]
    return not missing


class TargetLooks:
    """Checks of one run's target, each for one kind of data."""

    def __init__(
        self, target: KafkaCluster, offsets: EndOffsets, flow: Flow, names: RefreshNames
    ) -> None:
        self._bootstrap = target.bootstrap_servers
        self._offsets = offsets
        self._flow = flow
        self._names = names
        self._checkpoints = TopicPartition(f"{flow.alias}.checkpoints.internal", 0)
        self._checkpoints_read = 0
        self._missing = [flow.remote_topic(topic) for topic in names.topics]
        self._without_records = list(self._missing)
        self._without_settings = [flow.remote_topic(topic) for topic in names.with_settings]
        self._without_offsets = list(names.groups)
        self._admin = admin_client(self._bootstrap)
        self._groups = group_admin(target)

    def close(self) -> None:
        """Close the connections."""
        self._groups.close()

    def has_topics(self) -> bool:
        """Whether every remote topic exists."""
        return drop_found(self._missing, self._exist)

    def has_records(self) -> bool:
        """Whether every remote topic has all records."""
        return drop_found(self._without_records, self._have_records)

    def has_configs(self) -> bool:
        """Whether all remote topics have the settings of their source topics."""
        return drop_found(self._without_settings, self._have_settings)

    def has_checkpoints(self) -> bool:
        """Whether there is a checkpoint of every group."""
        (end_offset,) = self._offsets.end_offsets([self._checkpoints]).values()
        if end_offset is None or end_offset < max(len(self._names.groups), self._checkpoints_read):
            return False
        records = read_topic(self._bootstrap, self._checkpoints.topic, read_committed=False)[0]
        self._checkpoints_read = len(records) + 1
        found = {
            Checkpoint.decode(record.content.key or b"", record.content.value or b"").group
            for record in records
        }
        return found >= set(self._names.groups)

    def has_group_offsets(self) -> bool:
        """Whether every group could continue with the second record of its remote topic."""
        return drop_found(self._without_offsets, self._have_offsets)

    def _exist(self, remotes: Sequence[str]) -> bool:
        ends = self._offsets.end_offsets([TopicPartition(each, 0) for each in remotes])
        return None not in ends.values()

    def _have_records(self, remotes: Sequence[str]) -> bool:
        partitions = [TopicPartition(each, 0) for each in remotes]
        return self._offsets.record_count(partitions, RECORDS) == RECORDS * len(partitions)

    def _have_settings(self, remotes: Sequence[str]) -> bool:
        asked = [ConfigResource(ConfigResource.Type.TOPIC, remote) for remote in remotes]
        for future in self._admin.describe_configs(asked).values():
            try:
                found = future.result(RESPONSE_SECONDS)
            except KafkaException as error:
                if error.args[0].code() != ClientError.UNKNOWN_TOPIC_OR_PART:
                    raise
                return False
            if any(found[name].value != value for name, value in OWN_SETTINGS.items()):
                return False
        return True

    def _have_offsets(self, groups: Sequence[str]) -> bool:
        for group, found in self._groups.committed_offsets(groups).items():
            if isinstance(found, KafkaError):
                raise found
            remote = TopicPartition(self._flow.remote_topic(self._names.groups[group]), 0)
            if remote not in found or found[remote].next_offset != COMMITTED:
                return False
        return True
