"""Finds out which permissions we have on a cluster, and changes nothing there.

Runs on: wherever `sparkmirror check` is called. For topics that exist and for the cluster itself,
brokers report what we may do (KIP-430). For everything else a request is sent that needs the
permission and cannot succeed: brokers check permissions first, so its error shows the result.

    topic    CREATE, ALTER, ALTER_CONFIGS   the real request, to be validated only
             READ, WRITE                    fetch; produce nothing, which is always rejected
    group    READ                           heartbeat of a member that does not exist
    txn id   WRITE                          end of a transaction of a producer that does not exist
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kafka.protocol.admin import (
    AlterConfigsRequest,
    DescribeGroupsRequest,
    IncrementalAlterConfigsRequest,
)
from kafka.protocol.consumer import FetchRequest, HeartbeatRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer import EndTxnRequest, InitProducerIdRequest, ProduceRequest

from sparkmirror.errors import KafkaError
from sparkmirror.mirror.permissions import Operation, Permission, Resource
from sparkmirror.wire.access import DENIALS
from sparkmirror.wire.admin.admin_client import in_parts
from sparkmirror.wire.admin.group_admin import GroupAdmin

TOPIC = 2
# The bits of KIP-430.
BITS = {
    Operation.READ: 3,
    Operation.WRITE: 4,
    Operation.CREATE: 5,
    Operation.ALTER: 7,
    Operation.DESCRIBE: 8,
    Operation.DESCRIBE_CONFIGS: 10,
    Operation.ALTER_CONFIGS: 11,
    Operation.IDEMPOTENT_WRITE: 12,
}
# Later versions name topics by ids, which topics that do not exist lack.
NEWEST_FETCH = 12
NEWEST_PRODUCE = 12
# Later versions begin the producer's next transaction.
NEWEST_END_TXN = 3
WAIT_MS = 1000
# Brokers before this release hang up when they are sent a batch without bytes.
REJECTS_EMPTY = (2, 7)
REPORTS_OPERATIONS = (2, 3)
NOT_REPORTED = "these brokers do not report permissions (KIP-430, from 2.3)"
NOT_REPORTED_FOR_NEW = (
    "brokers before 2.7 do not report whether we may write to a topic that does not exist"
)
NO_MEMBER = "sparkmirror-check"
SOME_CONFIG = ("retention.ms", 0, "604800000")

Codes = Mapping[str, int]
PermissionResults = dict[Permission, bool | KafkaError]


class NotReportedError(KafkaError):
    """Brokers of this release report a permission only when it is used."""


class PermissionProbe(GroupAdmin):
    """An admin connection that asks what it may do."""

    def ask(self, permissions: Iterable[Permission]) -> PermissionResults:
        """Whether we have each of these permissions, or why that cannot be found out."""
        results: PermissionResults = {}
        by_kind: dict[tuple[Resource, Operation], list[str]] = {}
        for permission in dict.fromkeys(permissions):
            by_kind.setdefault((permission.resource, permission.operation), []).append(
                permission.name
            )
        for (resource, operation), names in by_kind.items():
            for name, result in self._ask_kind(resource, operation, names).items():
                results[Permission(resource, name, operation)] = result
        return results

    def existing(self, topics: Iterable[str]) -> set[str]:
        """Those that exist and are shown to us."""
        return {name for name, error in self.find_topics(topics).items() if error is None}

    # -- kinds of permissions ----------------------------------------------------------------------

    def _ask_kind(
        self, resource: Resource, operation: Operation, names: Sequence[str]
    ) -> dict[str, bool | KafkaError]:
        try:
            match resource:
                case Resource.TOPIC:
                    return dict(self._ask_topics(operation, names))
                case Resource.GROUP:
                    return {name: self._probe_group(operation, name) for name in names}
                case Resource.TRANSACTIONAL_ID:
                    return {name: self._probe_end(name) for name in names}
                case Resource.CLUSTER:
                    return dict.fromkeys(names, self._probe_cluster(operation))
        except KafkaError as error:
            return dict.fromkeys(names, error)

    def _ask_topics(self, operation: Operation, names: Sequence[str]) -> dict[str, bool]:
        """CREATE may be granted on the cluster, so the bits of a topic do not suffice."""
        granted = {} if operation is Operation.CREATE else self._granted_on_topics(names)
        results = {name: BITS[operation] in bits for name, bits in granted.items()}
        left = [name for name in names if name not in results]
        for part in in_parts(left):
            codes = self._tries[operation](part)
            results |= {name: codes.get(name, 0) not in DENIALS for name in part}
        return results

    @property
    def _tries(self) -> Mapping[Operation, Callable[[Sequence[str]], Codes]]:
        return {
            Operation.DESCRIBE: self._try_describe,
            Operation.READ: self._try_fetch,
            Operation.WRITE: self._try_produce,
            Operation.CREATE: self._try_create,
            Operation.ALTER: self._try_grow,
            Operation.ALTER_CONFIGS: self._try_alter_configs,
            Operation.DESCRIBE_CONFIGS: self._try_describe_configs,
        }

    def _granted_on_topics(self, names: Sequence[str]) -> dict[str, set[int]]:
        """The bits that brokers report of topics that exist; old ones report none."""
        granted: dict[str, set[int]] = {}
        for part in in_parts(names):
            rows = [MetadataRequest.MetadataRequestTopic(topic_id=None, name=name) for name in part]
            request = MetadataRequest(
                topics=rows,
                allow_auto_topic_creation=False,
                include_topic_authorized_operations=True,
            )
            for row in self._send("ask for permissions on topics", request).topics:
                if not row.error_code and row.authorized_operations is not None:
                    granted[row.name] = set(row.authorized_operations)
        return granted

    def _probe_cluster(self, operation: Operation) -> bool:
        if operation is Operation.IDEMPOTENT_WRITE:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=WAIT_MS)
            return self._send("ask for a producer id", request).error_code not in DENIALS
        granted = self._describe_cluster().operations
        if granted is None:
            raise NotReportedError(f"'{self._alias}': {NOT_REPORTED}")
        return BITS[operation] in granted

    def _probe_group(self, operation: Operation, group: str) -> bool:
        if operation is Operation.DESCRIBE:
            request = DescribeGroupsRequest(groups=[group], include_authorized_operations=False)
            rows = self._send(f"describe group '{group}'", request).groups
            return all(row.error_code not in DENIALS for row in rows)
        request = HeartbeatRequest(
            group_id=group, generation_id=-1, member_id=NO_MEMBER, group_instance_id=None
        )
        code = self._send(f"heartbeat in group '{group}'", request).error_code
        return code not in DENIALS

    def _probe_end(self, transactional_id: str) -> bool:
        request = EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=-1,
            producer_epoch=-1,
            committed=False,
            max_version=NEWEST_END_TXN,
        )
        code = self._send(f"end a transaction of '{transactional_id}'", request).error_code
        return code not in DENIALS

    # -- requests about topics that cannot succeed -------------------------------------------------

    def _try_describe(self, names: Sequence[str]) -> Codes:
        return {name: _code(error) for name, error in self.find_topics(names).items()}

    def _try_describe_configs(self, names: Sequence[str]) -> Codes:
        return {name: _code(found) for name, found in self.describe_topic_configs(names).items()}

    def _try_create(self, names: Sequence[str]) -> Codes:
        wanted = {name: {"num_partitions": 1, "replication_factor": 1} for name in names}
        with self._during("ask for the permission to create topics"):
            result = self._client.create_topics(
                wanted, timeout_ms=self._timeout_ms, validate_only=True, raise_errors=False
            )
        return {row["name"]: row["error_code"] for row in result["topics"]}

    def _try_grow(self, names: Sequence[str]) -> Codes:
        with self._during("ask for the permission to add partitions"):
            result = self._client.create_partitions(
                dict.fromkeys(names, 1),
                timeout_ms=self._timeout_ms,
                validate_only=True,
                raise_errors=False,
            )
        return {row["name"]: row["error_code"] for row in result.to_dict()["results"]}

    def _try_alter_configs(self, names: Sequence[str]) -> Codes:
        request: Any = IncrementalAlterConfigsRequest(
            resources=[(TOPIC, name, [SOME_CONFIG]) for name in names], validate_only=True
        )
        if not self._speaks(IncrementalAlterConfigsRequest):
            name_and_value = (SOME_CONFIG[0], SOME_CONFIG[2])
            request = AlterConfigsRequest(
                resources=[(TOPIC, name, [name_and_value]) for name in names], validate_only=True
            )
        rows = self._send("ask for the permission to alter topic configs", request).responses
        return {row.resource_name: row.error_code for row in rows}

    def _try_fetch(self, names: Sequence[str]) -> Codes:
        topic_row = FetchRequest.FetchTopic
        partition = topic_row.FetchPartition(
            partition=0, fetch_offset=0, log_start_offset=-1, partition_max_bytes=1
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1,
            topics=[topic_row(topic=name, partitions=[partition]) for name in names],
            max_version=NEWEST_FETCH,
        )
        rows = self._send("ask for the permission to fetch", request).responses
        return {row.topic: _first_code(row.partitions) for row in rows}

    def _try_produce(self, names: Sequence[str]) -> Codes:
        if self.release < REJECTS_EMPTY:
            why = NOT_REPORTED if self.release < REPORTS_OPERATIONS else NOT_REPORTED_FOR_NEW
            raise NotReportedError(f"'{self._alias}': {why}")
        topic_row = ProduceRequest.TopicProduceData
        nothing = topic_row.PartitionProduceData(index=0, records=b"")
        request = ProduceRequest(
            transactional_id=None,
            acks=-1,
            timeout_ms=WAIT_MS,
            topic_data=[topic_row(name=name, partition_data=[nothing]) for name in names],
            max_version=NEWEST_PRODUCE,
        )
        rows = self._send("ask for the permission to produce", request).responses
        return {row.name: _first_code(row.partition_responses) for row in rows}


def _code(found: object) -> int:
    return int(getattr(found, "code", 0))


def _first_code(rows: Sequence[Any]) -> int:
    return int(rows[0].error_code) if rows else 0
