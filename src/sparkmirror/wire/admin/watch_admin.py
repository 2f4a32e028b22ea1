"""What only the views ask of a cluster: its brokers, members of groups, the newest record's time.

Runs on: worker, on any thread, one at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer import ListOffsetsRequest

from sparkmirror.errors import KafkaError, UnsupportedVersionError
from sparkmirror.mirror.permissions import Operation, group_permission, topic_permission
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.group_admin import DEAD, GroupAdmin
from sparkmirror.wire.protocol.error_codes import GROUP_ID_NOT_FOUND

# The record with the largest timestamp (KIP-734), since Kafka 3.0.
MAX_TIMESTAMP, SINCE_VERSION = -3, 7


class WatchAdmin(GroupAdmin):
    """Requests of the views, which change nothing."""

    def broker_ids(self) -> tuple[int, ...]:
        """The brokers that the cluster has now."""
        return self._describe_cluster().brokers

    def member_counts(self, group_ids: Iterable[str]) -> dict[str, int | KafkaError | None]:
        """The members of each group; None: a group of the protocol of KIP-848, not counted."""
        return self._ask_until_settled(group_ids, self._find_coordinators, self._count)

    def _count(self, node: int, groups: Sequence[str]) -> dict[str, int | KafkaError | None]:
        request = DescribeGroupsRequest(groups=list(groups), include_authorized_operations=False)
        rows = self._send("describe groups", request, node).groups
        counts: dict[str, int | KafkaError | None] = {
            row.group_id: self._members(row) for row in rows
        }
        gone = [group for group, count in counts.items() if count == -1]
        if gone:
            listed = {row.group_id: row.state for row in self._listings_of(node)}
            for group in gone:
                state = listed.get(group, DEAD)
                counts[group] = 0 if state in (DEAD, "Empty") else None
        return counts

    def _members(self, row: Any) -> int | KafkaError:
        if row.error_code == GROUP_ID_NOT_FOUND or row.group_state == DEAD:
            return -1
        if row.error_code:
            needed = group_permission(Operation.DESCRIBE, row.group_id)
            return self._error(f"describe group '{row.group_id}'", row.error_code, needed)
        return len(row.members)

    def newest_ms(self, tp: TopicPartition) -> int | KafkaError:
        """The largest timestamp in a partition; -1 if it is empty."""
        return self._ask_until_settled([tp], self._find_leaders, self._newest)[tp]

    def _newest(
        self, node: int, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int | KafkaError]:
        if self._version(ListOffsetsRequest) < SINCE_VERSION:
            text = f"brokers of '{self.alias}' before Kafka 3.0 do not tell the newest timestamp"
            return dict.fromkeys(partitions, UnsupportedVersionError(text))
        topic_row = ListOffsetsRequest.ListOffsetsTopic
        row = topic_row.ListOffsetsPartition
        topics = [
            topic_row(
                name=tp.topic,
                partitions=[row(partition_index=tp.partition, timestamp=MAX_TIMESTAMP)],
            )
            for tp in partitions
        ]
        request = ListOffsetsRequest(isolation_level=0, topics=topics, min_version=SINCE_VERSION)
        response = self._send("find the newest timestamp", request, node)
        return {
            TopicPartition(topic.name, each.partition_index): self._timestamp(topic.name, each)
            for topic in response.topics
            for each in topic.partitions
        }

    def _timestamp(self, topic: str, row: Any) -> int | KafkaError:
        if row.error_code:
            what = f"find the newest timestamp of {topic}-{row.partition_index}"
            return self._error(what, row.error_code, topic_permission(Operation.DESCRIBE, topic))
        return int(row.timestamp)
