"""Finds out which rights we have on a cluster, and changes nothing there.

Runs on: wherever `sparkmirror check` is called. For topics that exist and for the cluster itself,
brokers tell what we may do (KIP-430). For everything else a request is sent that needs the right
and cannot succeed: brokers check rights first, so its error tells.

    topic    CREATE, ALTER, ALTER_CONFIGS   the real request, to be validated only
             READ, WRITE                    fetch; produce nothing, which is always refused
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
REFUSES_NOTHING = (2, 7)
TELLS = (2, 3)
NOT_TOLD = "these brokers do not tell what we may do (KIP-430 came with 2.3)"
NOT_TOLD_OF_NEW = "brokers before 2.7 do not tell whether we may write to a topic that is not there"
NOBODY = "sparkmirror-check"
SOME_CONFIG = ("retention.ms", 0, "604800000")

Codes = Mapping[str, int]
Answers = dict[Permission, bool | KafkaError]


class NotToldError(KafkaError):
    """Brokers of this release cannot be asked about a right without using it."""


class PermissionProbe(GroupAdmin):
    """An admin connection that asks what it may do."""

    def ask(self, rights: Iterable[Permission]) -> Answers:
        """Whether we have each of these rights, or why that cannot be found out."""
        answers: Answers = {}
        by_kind: dict[tuple[Resource, Operation], list[str]] = {}
        for right in dict.fromkeys(rights):
            by_kind.setdefault((right.resource, right.operation), []).append(right.name)
        for (resource, operation), names in by_kind.items():
            for name, answer in self._ask_kind(resource, operation, names).items():
                answers[Permission(resource, name, operation)] = answer
        return answers

    def existing(self, topics: Iterable[str]) -> set[str]:
        """Those that exist and are shown to us."""
        return {name for name, error in self.find_topics(topics).items() if error is None}

    # -- kinds of rights ---------------------------------------------------------------------------

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
        """CREATE may come from the cluster, so that what is told of a topic does not suffice."""
        told = {} if operation is Operation.CREATE else self._told_of_topics(names)
        answers = {name: BITS[operation] in bits for name, bits in told.items()}
        left = [name for name in names if name not in answers]
        for part in in_parts(left):
            codes = self._tries[operation](part)
            answers |= {name: codes.get(name, 0) not in DENIALS for name in part}
        return answers

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

    def _told_of_topics(self, names: Sequence[str]) -> dict[str, set[int]]:
        """What brokers tell of topics that exist; old ones tell nothing."""
        told: dict[str, set[int]] = {}
        for part in in_parts(names):
            rows = [MetadataRequest.MetadataRequestTopic(topic_id=None, name=name) for name in part]
            request = MetadataRequest(
                topics=rows,
                allow_auto_topic_creation=False,
                include_topic_authorized_operations=True,
            )
            for row in self._send("ask for rights on topics", request).topics:
                if not row.error_code and row.authorized_operations is not None:
                    told[row.name] = set(row.authorized_operations)
        return told

    def _probe_cluster(self, operation: Operation) -> bool:
        if operation is Operation.IDEMPOTENT_WRITE:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=WAIT_MS)
            return self._send("ask for a producer id", request).error_code not in DENIALS
        told = self._describe_cluster().operations
        if told is None:
            raise NotToldError(f"'{self._alias}': {NOT_TOLD}")
        return BITS[operation] in told

    def _probe_group(self, operation: Operation, group: str) -> bool:
        if operation is Operation.DESCRIBE:
            request = DescribeGroupsRequest(groups=[group], include_authorized_operations=False)
            rows = self._send(f"describe group '{group}'", request).groups
            return all(row.error_code not in DENIALS for row in rows)
        request = HeartbeatRequest(
            group_id=group, generation_id=-1, member_id=NOBODY, group_instance_id=None
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
        with self._during("ask for the right to create topics"):
            answer = self._client.create_topics(
                wanted, timeout_ms=self._timeout_ms, validate_only=True, raise_errors=False
            )
        return {row["name"]: row["error_code"] for row in answer["topics"]}

    def _try_grow(self, names: Sequence[str]) -> Codes:
        with self._during("ask for the right to add partitions"):
            answer = self._client.create_partitions(
                dict.fromkeys(names, 1),
                timeout_ms=self._timeout_ms,
                validate_only=True,
                raise_errors=False,
            )
        return {row["name"]: row["error_code"] for row in answer.to_dict()["results"]}

    def _try_alter_configs(self, names: Sequence[str]) -> Codes:
        request: Any = IncrementalAlterConfigsRequest(
            resources=[(TOPIC, name, [SOME_CONFIG]) for name in names], validate_only=True
        )
        if not self._speaks(IncrementalAlterConfigsRequest):
            name_and_value = (SOME_CONFIG[0], SOME_CONFIG[2])
            request = AlterConfigsRequest(
                resources=[(TOPIC, name, [name_and_value]) for name in names], validate_only=True
            )
        rows = self._send("ask for the right to alter topic configs", request).responses
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
        rows = self._send("ask for the right to fetch", request).responses
        return {row.topic: _first_code(row.partitions) for row in rows}

    def _try_produce(self, names: Sequence[str]) -> Codes:
        if self.release < REFUSES_NOTHING:
            why = NOT_TOLD if self.release < TELLS else NOT_TOLD_OF_NEW
            raise NotToldError(f"'{self._alias}': {why}")
        topic_row = ProduceRequest.TopicProduceData
        nothing = topic_row.PartitionProduceData(index=0, records=b"")
        request = ProduceRequest(
            transactional_id=None,
            acks=-1,
            timeout_ms=WAIT_MS,
            topic_data=[topic_row(name=name, partition_data=[nothing]) for name in names],
            max_version=NEWEST_PRODUCE,
        )
        rows = self._send("ask for the right to produce", request).responses
        return {row.name: _first_code(row.partition_responses) for row in rows}


def _code(found: object) -> int:
    return int(getattr(found, "code", 0))


def _first_code(rows: Sequence[Any]) -> int:
    return int(rows[0].error_code) if rows else 0
