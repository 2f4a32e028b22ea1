"""Consumer groups of one cluster, through kafka-python: states, committed offsets, log ranges.

Runs on: worker, on any thread, one at a time; every call blocks for little more than the admin
timeout. Thousands of groups go into one request per coordinator. Each group, and each partition,
has an error of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.consumer import ListOffsetsRequest, OffsetCommitRequest, OffsetFetchRequest
from kafka.protocol.metadata import FindCoordinatorRequest

from sparkmirror.errors import KafkaError
from sparkmirror.mirror.permissions import Operation, group_permission, topic_permission
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.broker_routed_admin import BrokerRoutedAdmin, may_pass
from sparkmirror.wire.protocol.error_codes import (
    GROUP_ID_NOT_FOUND,
    LEADER_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
)

DEAD = "Dead"
FOLLOWED_TYPES = frozenset({"classic", "consumer"})
FOLLOWED_PROTOCOLS = frozenset({"consumer", ""})
GROUP_KEY = 0
START, END = -2, -1
# First versions that: find many coordinators (KIP-699), fetch for many groups (KIP-709), return a
# group's type (KIP-848).
FIND_MANY = 4
FETCH_MANY = 8
TELL_TYPE = 5
# A broker takes the requests of a connection one by one, and a commit waits for its log: measured,
# 2,000 groups take 7.6 s over one connection. Below this many groups, another is not worth opening.
GROUPS_PER_CONNECTION = 50
MOST_CONNECTIONS = 4


class ListedGroup(NamedTuple):
    """A group as ListGroups returns it. Old brokers return neither state nor type: then empty."""

    group_id: str
    protocol_type: str
    state: str
    type: str


class DescribedGroup(NamedTuple):
    """A group's state in the broker's term, `Dead` when there is no such group, or the error."""

    state: str
    error: KafkaError | None = None


class GroupOffset(NamedTuple):
    """What a group committed for a partition; -1 when its offset was deleted."""

    next_offset: int
    metadata: str = ""


_Offsets = dict[TopicPartition, GroupOffset]
_Outcomes = dict[TopicPartition, KafkaError | None]
GroupOffsets = Mapping[TopicPartition, tuple[int, str]]


class GroupAdmin(BrokerRoutedAdmin):
    """Admin requests about the groups of one cluster, and about topics as `Admin`'s."""

    def list_groups(self) -> list[ListedGroup]:
        """All consumer groups, in whatever state; not share, streams or Connect groups.

        Raises:
            KafkaError: a broker does not respond, so that groups would be missing.
        """
        key = ("all groups",)
        response = self._ask_until_settled(
            [key], lambda _: {key: 0}, lambda _, __: {key: self._listings()}
        )
        listings = response[key]
        if isinstance(listings, KafkaError):
            raise listings
        return [listing for listing in listings if _is_consumer_group(listing)]

    def describe_groups(self, group_ids: Iterable[str]) -> dict[str, DescribedGroup]:
        """The state of each group, of either group protocol."""
        responses = self._ask_until_settled(group_ids, self._find_coordinators, self._describe)
        return {
            group: DescribedGroup("", response)
            if isinstance(response, KafkaError)
            else DescribedGroup(response)
            for group, response in responses.items()
        }

    def committed_offsets(
        self, group_ids: Iterable[str]
    ) -> dict[str, dict[TopicPartition, GroupOffset] | KafkaError]:
        """All that each group committed; nothing for a group that is not there."""
        return self._ask_until_settled(group_ids, self._find_coordinators, self._fetch_offsets)

    def alter_many(
        self, wanted: Mapping[str, GroupOffsets], is_stopping: Callable[[], bool] = lambda: False
    ) -> dict[str, dict[TopicPartition, KafkaError | None]]:
        """As `alter_offsets`, of many groups, over several connections at a time.

        Groups missing from the result were not tried, because `is_stopping` returned True.
        """
        if not wanted:
            return {}
        # All at once: each connection would ask group by group.
        unknown = [group for group in wanted if group not in self._owners]
        self._find_owners(unknown, self._find_coordinators)
        outcomes: dict[str, _Outcomes] = {}
        left = iter(wanted.items())

        def work(connection: GroupAdmin) -> None:
            # `next` of a dict's iterator is atomic: no two connections get the same group.
            while not is_stopping() and (one := next(left, None)) is not None:
                group, offsets = one
                outcomes[group] = connection.alter_offsets(group, offsets)

        with self._connections(len(wanted)) as several, ThreadPoolExecutor(len(several)) as pool:
            list(pool.map(work, several))
        return outcomes

    @contextmanager
    def _connections(self, groups: int) -> Iterator[list[GroupAdmin]]:
        """This connection and, for many groups, some temporary ones."""
        connections = [self]
        try:
            for _ in range(1, min(groups // GROUPS_PER_CONNECTION, MOST_CONNECTIONS)):
                connection = GroupAdmin(self._config, self._timeout_ms)
                connection._owners = self._owners
                connections.append(connection)
            yield connections
        finally:
            for connection in connections[1:]:
                connection.close()

    def alter_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, tuple[int, str]]
    ) -> dict[TopicPartition, KafkaError | None]:
        """Commit (offset, metadata) for a group without members; each partition's error.

        UNKNOWN_MEMBER_ID means that the group has members: the broker stored nothing.
        """
        if not offsets:
            return {}

        def commit(node: int, _: Sequence[str]) -> dict[str, _Outcomes | KafkaError]:
            return {group_id: self._commit(node, group_id, offsets)}

        outcome = self._ask_until_settled([group_id], self._find_coordinators, commit)[group_id]
        return dict.fromkeys(offsets, outcome) if isinstance(outcome, KafkaError) else outcome

    def start_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int | KafkaError]:
        """The first offset of each partition's log."""
        return self._list_offsets(partitions, START)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], seconds: float | None = None
    ) -> dict[TopicPartition, int | KafkaError]:
        """The offset that each partition's next record gets (the high watermark).

        Errors that may pass are waited for: so many seconds, or the admin timeout.
        """
        return self._list_offsets(partitions, END, seconds)

    # -- groups ------------------------------------------------------------------------------------

    def _find_coordinators(self, groups: Sequence[str]) -> dict[str, int | KafkaError]:
        what = "find group coordinators"
        if self._version(FindCoordinatorRequest) < FIND_MANY:
            return {group: self._find_coordinator(group) for group in groups}
        request = FindCoordinatorRequest(
            key_type=GROUP_KEY, coordinator_keys=list(groups), min_version=FIND_MANY
        )
        rows = self._send(what, request).coordinators
        return {row.key: self._coordinator(row.key, row) for row in rows}

    def _find_coordinator(self, group: str) -> int | KafkaError:
        request = FindCoordinatorRequest(key=group, key_type=GROUP_KEY, max_version=FIND_MANY - 1)
        try:
            return self._coordinator(group, self._send("find a group coordinator", request))
        except KafkaError as error:
            return error

    def _coordinator(self, group: str, row: Any) -> int | KafkaError:
        if row.error_code:
            what = f"find the coordinator of group '{group}'"
            needed = group_permission(Operation.DESCRIBE, group)
            return self._error(what, row.error_code, needed, detail=row.error_message)
        return int(row.node_id)

    def _listings(self) -> list[ListedGroup]:
        brokers = self._describe_cluster().brokers
        found = {row.group_id: row for broker in brokers for row in self._listings_of(broker)}
        return list(found.values())

    def _listings_of(self, broker: int) -> list[ListedGroup]:
        response = self._send(f"list groups of broker {broker}", ListGroupsRequest(), broker)
        if response.error_code:
            raise self._error(f"list groups of broker {broker}", response.error_code)
        return [
            ListedGroup(
                row.group_id, row.protocol_type, row.group_state or "", row.group_type or ""
            )
            for row in response.groups
        ]

    def _describe(self, node: int, groups: Sequence[str]) -> dict[str, str | KafkaError]:
        request = DescribeGroupsRequest(groups=list(groups), include_authorized_operations=False)
        rows = self._send("describe groups", request, node).groups
        states = {row.group_id: self._state(row) for row in rows}
        if DEAD in states.values() and self._version(ListGroupsRequest) >= TELL_TYPE:
            # Groups of the protocol of KIP-848 are "not found" to DescribeGroups.
            listed = {row.group_id: row.state for row in self._listings_of(node)}
            states |= {
                group: listed[group]
                for group, state in states.items()
                if state == DEAD and group in listed
            }
        return states

    def _state(self, row: Any) -> str | KafkaError:
        if row.error_code == GROUP_ID_NOT_FOUND:
            return DEAD
        if row.error_code:
            needed = group_permission(Operation.DESCRIBE, row.group_id)
            return self._error(f"describe group '{row.group_id}'", row.error_code, needed)
        return str(row.group_state)

    def _fetch_offsets(self, node: int, groups: Sequence[str]) -> dict[str, _Offsets | KafkaError]:
        what = "read committed offsets"
        if self._version(OffsetFetchRequest) < FETCH_MANY:
            return {group: self._fetch_one(node, group) for group in groups}
        wanted = [
            OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None)
            for group in groups
        ]
        request = OffsetFetchRequest(
            groups=wanted, require_stable=False, min_version=FETCH_MANY, max_version=FETCH_MANY
        )
        rows = self._send(what, request, node).groups
        return {row.group_id: self._offsets(row.group_id, row) for row in rows}

    def _fetch_one(self, node: int, group: str) -> _Offsets | KafkaError:
        request = OffsetFetchRequest(
            group_id=group, topics=None, min_version=2, max_version=FETCH_MANY - 1
        )
        try:
            return self._offsets(group, self._send("read committed offsets", request, node))
        except KafkaError as error:
            return error

    def _offsets(self, group: str, row: Any) -> _Offsets | KafkaError:
        what = f"read committed offsets of group '{group}'"
        if row.error_code and row.error_code != GROUP_ID_NOT_FOUND:
            return self._error(what, row.error_code, group_permission(Operation.DESCRIBE, group))
        found: _Offsets = {}
        for topic in row.topics:
            for each in topic.partitions:
                tp = TopicPartition(topic.name, each.partition_index)
                if each.error_code:
                    needed = topic_permission(Operation.DESCRIBE, topic.name)
                    return self._error(f"{what} in {tp}", each.error_code, needed)
                found[tp] = GroupOffset(each.committed_offset, each.metadata or "")
        return found

    def _commit(
        self, node: int, group: str, offsets: Mapping[TopicPartition, tuple[int, str]]
    ) -> _Outcomes | KafkaError:
        what = f"commit offsets of group '{group}'"
        response = self._send(what, _commit_request(group, offsets), node)
        outcomes: _Outcomes = {}
        for topic in response.topics:
            for each in topic.partitions:
                tp = TopicPartition(topic.name, each.partition_index)
                code = each.error_code
                needed = (
                    group_permission(Operation.READ, group),
                    topic_permission(Operation.READ, topic.name),
                )
                outcomes[tp] = self._error(f"{what} in {tp}", code, *needed) if code else None
        moved = [error for error in outcomes.values() if error is not None and may_pass(error)]
        return moved[0] if moved else outcomes

    # -- log ranges --------------------------------------------------------------------------------

    def _list_offsets(
        self, partitions: Iterable[TopicPartition], which: int, seconds: float | None = None
    ) -> dict[TopicPartition, int | KafkaError]:
        def ask(
            node: int, chunk: Sequence[TopicPartition]
        ) -> dict[TopicPartition, int | KafkaError]:
            response = self._send("list offsets", _offsets_request(chunk, which), node)
            return {
                TopicPartition(topic.name, each.partition_index): self._log_offset(topic.name, each)
                for topic in response.topics
                for each in topic.partitions
            }

        return self._ask_until_settled(partitions, self._find_leaders, ask, seconds)

    def _log_offset(self, topic: str, row: Any) -> int | KafkaError:
        if row.error_code:
            what = f"list offsets of {topic}-{row.partition_index}"
            return self._error(what, row.error_code, topic_permission(Operation.DESCRIBE, topic))
        return int(row.offset)

    def _find_leaders(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int | KafkaError]:
        topics = sorted({tp.topic for tp in partitions})
        with self._during("find partition leaders"):
            rows = self._client.describe_topics(topics)
        leaders = {
            TopicPartition(row["name"], each["partition_index"]): each["leader_id"]
            for row in rows
            for each in row["partitions"]
        }
        errors = {row["name"]: row["error_code"] for row in rows}
        return {tp: self._leader(tp, leaders.get(tp), errors.get(tp.topic, 0)) for tp in partitions}

    def _leader(self, tp: TopicPartition, leader: int | None, code: int) -> int | KafkaError:
        if leader is None:
            needed = topic_permission(Operation.DESCRIBE, tp.topic)
            what = f"find the leader of {tp}"
            return self._error(what, code or UNKNOWN_TOPIC_OR_PARTITION, needed)
        if leader < 0:
            return self._error(f"find the leader of {tp}", LEADER_NOT_AVAILABLE)
        return leader


def _is_consumer_group(listing: ListedGroup) -> bool:
    # Brokers before KIP-848 return no type: all their groups are classic.
    group_type = listing.type.lower() or "classic"
    return group_type in FOLLOWED_TYPES and listing.protocol_type in FOLLOWED_PROTOCOLS


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    found: dict[str, list[TopicPartition]] = {}
    for tp in partitions:
        found.setdefault(tp.topic, []).append(tp)
    return found


def _commit_request(group: str, offsets: Mapping[TopicPartition, tuple[int, str]]) -> Any:
    """As a consumer that is no member of the group: generation -1 (KIP-396)."""
    topic_row = OffsetCommitRequest.OffsetCommitRequestTopic
    row = topic_row.OffsetCommitRequestPartition
    topics = [
        topic_row(
            name=topic,
            partitions=[
                row(
                    partition_index=tp.partition,
                    committed_offset=offsets[tp][0],
                    committed_leader_epoch=-1,
                    committed_metadata=offsets[tp][1],
                )
                for tp in partitions
            ],
        )
        for topic, partitions in _by_topic(offsets).items()
    ]
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        retention_time_ms=-1,
        topics=topics,
        # Later versions are for members of groups of the new protocol (KIP-848).
        max_version=8,
    )


def _offsets_request(partitions: Iterable[TopicPartition], which: int) -> Any:
    topic_row = ListOffsetsRequest.ListOffsetsTopic
    row = topic_row.ListOffsetsPartition
    topics = [
        topic_row(
            name=topic,
            partitions=[row(partition_index=tp.partition, timestamp=which) for tp in found],
        )
        for topic, found in _by_topic(partitions).items()
    ]
    return ListOffsetsRequest(isolation_level=0, topics=topics)
