"""Writes records that only one process at a time may write: the leader of a group of workers.

Runs on: worker, blocking, on any thread. Every write is a transaction of its own, so
that nothing of one that fails is ever read.

    claim   InitProducerId         fences the previous owner and aborts its open transaction
    write   AddPartitionsToTxn, Produce, EndTxn                                          (KIP-98)

Invariant: a write is begun only after `may_write` was true later than the last claim. So a process
that claims although another one leads (it was frozen in between) has fenced that one by mistake,
but writes nothing; the other one claims again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn, TypeVar

from sparkmirror.batches.forward import stamp
from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import BrokerError, KafkaError, TransportError
from sparkmirror.mirror.permissions import (
    Operation,
    Permission,
    topic_permission,
    transaction_permission,
)
from sparkmirror.retry import retry_until
from sparkmirror.types import TopicPartition
from sparkmirror.wire.access import response_error
from sparkmirror.wire.client.blocking_client import BlockingClient
from sparkmirror.wire.client.leaders import Leader
from sparkmirror.wire.client.retry_policies import RetryPolicies
from sparkmirror.wire.produce.transaction_manager import ProducerIdAndEpoch
from sparkmirror.wire.protocol.api_versions import (
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    INIT_PRODUCER_ID,
    PRODUCE,
    Api,
)
from sparkmirror.wire.protocol.error_codes import (
    INVALID_PRODUCER_EPOCH,
    INVALID_PRODUCER_ID_MAPPING,
    PRODUCER_FENCED,
    error_code,
)
from sparkmirror.wire.protocol.group_messages import (
    TRANSACTION,
    decode_add_partition,
    decode_code,
    encode_add_partition,
    encode_end_transaction,
    encode_init_transactions,
    encode_transactional_produce,
)
from sparkmirror.wire.protocol.messages import decode_init_producer_id
from sparkmirror.wire.protocol.produce_messages import decode_produce

log = logging.getLogger(__name__)

FENCING = frozenset((INVALID_PRODUCER_EPOCH, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED))
# A transaction that its process did not end keeps readers waiting for this long, or until the next
# leader claims.
TRANSACTION_TIMEOUT_MS = 10_000
# One request, before it is sent again.
REQUEST_SECONDS = 5.0

T = TypeVar("T")


class FencedError(KafkaError):
    """Another process has claimed the transactional id, or may have: nothing was written.

    A process that still leads claims again; any other stops.
    """


class TransactionalWriter:
    """One transactional id. For any thread; one write at a time."""

    def __init__(
        self,
        config: ClientConfig,
        transactional_id: str,
        may_write: Callable[[], bool] = lambda: True,
    ) -> None:
        self.transactional_id = transactional_id
        # Connections to a frozen broker are closed as soon as their requests time out.
        self._config = replace(
            config, request_timeout_ms=min(config.request_timeout_ms, int(REQUEST_SECONDS * 1000))
        )
        self._may_write = may_write
        self._lock = threading.Lock()
        self._closed = False
        self._calls: BlockingClient | None = None
        self._coordinator: int | None = None
        self._identity: ProducerIdAndEpoch | None = None
        # By another process's claim; stronger than not being allowed to write for the moment.
        self._is_fenced = False
        self._sequences: dict[TopicPartition, int] = {}
        self._needed: tuple[Permission, ...] = (
            transaction_permission(Operation.WRITE, transactional_id),
        )

    @property
    def must_claim(self) -> bool:
        """Whether a write needs a claim first; not after being fenced, which is final."""
        return self._identity is None and not self._is_fenced

    def claim(self, seconds: float) -> None:
        """Fence every process that claimed before.

        Raises:
            FencedError: we may not write (any more).
            TransportError: the cluster does not respond in time.
            BrokerError: the cluster rejects it, for example for a missing permission.
        """
        with self._lock:
            self._identity = None
            self._identity = self._retry("claim", seconds, self._claim_once)
            self._is_fenced = False
            self._sequences.clear()
            self._check_may_write()

    def is_unfenced(self, tp: TopicPartition, seconds: float) -> bool:
        """Whether no process has claimed since we did; an empty transaction finds out.

        `tp`: a partition that we may write. False also if that cannot be found out in time.
        """
        if not self._lock.acquire(timeout=seconds):
            return False
        try:
            return self._identity is not None and self._try_empty_transaction(tp, seconds)
        finally:
            self._lock.release()

    def _try_empty_transaction(self, tp: TopicPartition, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        try:
            identity = self._claimed()
            self._retry("begin", seconds, lambda: self._add_partition(identity, tp))
            self._end_or_forget(identity, deadline - time.monotonic(), commit=False)
        except KafkaError as error:
            log.info("%s", error)
            self._identity = None
            return False
        return True

    def write(self, tp: TopicPartition, batch: bytearray, count: int, seconds: float) -> int:
        """Write a batch of `count` records; the offset of its first record.

        Raises:
            FencedError: another process has claimed, or we may not write: nothing was written.
            BrokerError: the cluster rejects the records or their commit: nothing was written.
            TransportError: not done in time; it may be written. Claim before the next write.
        """
        with self._lock:
            self._check_may_write()
            identity = self._claimed()
            sequence = self._sequences.get(tp, 0)
            self._needed = (self._needed[0], topic_permission(Operation.WRITE, tp.topic))
            stamp(batch, identity.producer_id, identity.epoch, sequence)
            try:
                offset = self._transaction(identity, tp, batch, time.monotonic() + seconds)
            except (FencedError, TransportError):
                self._identity = None
                raise
            self._sequences[tp] = sequence + count
            return offset

    def close(self) -> None:
        """Close the connections; a write that is under way fails."""
        self._closed = True
        with self._lock:
            if self._calls is not None:
                self._calls.close()
                self._calls = None

    # -- one transaction ---------------------------------------------------------------------------

    def _transaction(
        self, identity: ProducerIdAndEpoch, tp: TopicPartition, batch: bytearray, deadline: float
    ) -> int:
        def left() -> float:
            return deadline - time.monotonic()

        self._retry("begin", left(), lambda: self._add_partition(identity, tp))
        try:
            offset = self._retry(f"write {tp}", left(), lambda: self._produce(tp, batch))
        except BrokerError:
            self._end_or_forget(identity, left(), commit=False)
            raise
        self._check_may_write()
        self._end_or_forget(identity, left(), commit=True)
        return offset

    def _end_or_forget(self, identity: ProducerIdAndEpoch, seconds: float, *, commit: bool) -> None:
        """End the transaction. If that fails for any reason, a claim must come next.

        The partition's leader may have the records, with their sequence number: the next batch
        under that number would be taken for a repetition, acknowledged, and not stored.
        """
        what = "commit" if commit else "abort"
        try:
            self._retry(what, seconds, lambda: self._end(identity, commit=commit))
        except KafkaError:
            self._identity = None
            raise

    def _claim_once(self) -> ProducerIdAndEpoch:
        body = encode_init_transactions(self.transactional_id, TRANSACTION_TIMEOUT_MS)
        response = self._ask_coordinator("claim", INIT_PRODUCER_ID, body)
        code, producer_id, epoch = decode_init_producer_id(response)
        self._check("claim", code)
        return ProducerIdAndEpoch(producer_id, epoch)

    def _add_partition(self, identity: ProducerIdAndEpoch, tp: TopicPartition) -> None:
        body = encode_add_partition(self.transactional_id, *identity, tp)
        response = self._ask_coordinator("begin", ADD_PARTITIONS_TO_TXN, body)
        self._check("begin", decode_add_partition(response))

    def _produce(self, tp: TopicPartition, batch: bytearray) -> int:
        what = f"write {tp}"
        node = self._leader(tp).node
        timeout_ms = int(REQUEST_SECONDS * 1000)
        body = encode_transactional_produce(self.transactional_id, tp, batch, timeout_ms)
        try:
            call = self._connected().call(self._name(what), node, PRODUCE, body, REQUEST_SECONDS)
        except TransportError:
            # A frozen broker is not reached; by now another one may lead.
            self._connected().cluster.metadata.refresh()
            raise
        code, offset, detail = decode_produce(call.result(), call.version)[tp]
        if error_code(code).refresh:
            self._connected().cluster.metadata.refresh()
        self._check(what, code, detail)
        return offset

    def _end(self, identity: ProducerIdAndEpoch, *, commit: bool) -> None:
        what = "commit" if commit else "abort"
        body = encode_end_transaction(self.transactional_id, *identity, commit=commit)
        self._check(what, decode_code(self._ask_coordinator(what, END_TXN, body)))

    # -- asking ------------------------------------------------------------------------------------

    def _retry(self, what: str, seconds: float, attempt: Callable[[], T]) -> T:
        """Try until it is done, or rejected, or out of time."""
        try:
            return retry_until(
                attempt,
                RetryPolicies.of(self._config).requests,
                seconds,
                is_retriable=lambda error: error.retriable,
                pause=self._pause,
            )
        except KafkaError as error:
            if not error.retriable:
                raise
            text = f"{self._name(what)}: not done in {seconds:g} s: {error}"
            raise TransportError(text) from error

    def _pause(self, seconds: float) -> bool:
        """Let the connections work for this long; return whether the writer was closed."""
        if not self._closed:
            self._connected().wait(lambda: False, seconds)
        return self._closed

    def _ask_coordinator(self, what: str, api: Api, body: bytes) -> memoryview:
        calls = self._connected()
        if self._coordinator is None:
            self._coordinator = calls.find_coordinator(
                self.transactional_id, TRANSACTION, REQUEST_SECONDS
            )
        try:
            return calls.ask(self._name(what), self._coordinator, api, [body], REQUEST_SECONDS)
        except KafkaError:
            self._coordinator = None
            raise

    def _check(self, what: str, code: int, detail: str | None = None) -> None:
        if code in FENCING:
            self._is_fenced = True
            raise FencedError(
                f"{self._name(what)}: {error_code(code).name}: another worker has claimed the "
                "transactional id"
            )
        if code:
            if error_code(code).refresh:
                self._coordinator = None
            raise response_error(self._config, self._name(what), code, *self._needed, detail=detail)

    def _leader(self, tp: TopicPartition) -> Leader:
        cluster = self._connected().cluster
        cluster.metadata.track([tp.topic])
        if not self._connected().wait(lambda: tp in cluster.metadata.leaders, REQUEST_SECONDS):
            raise self._connected().too_late(
                self._name(f"find the leader of {tp}"), REQUEST_SECONDS
            )
        return cluster.metadata.leaders[tp]

    def _connected(self) -> BlockingClient:
        if self._closed:
            raise KafkaError(f"{self._name('use it')}: it is closed")
        if self._calls is None:
            self._calls = BlockingClient(self._config, time.monotonic, lambda: self._closed)
        return self._calls

    def _claimed(self) -> ProducerIdAndEpoch:
        self._connected().notice_closed()
        if self._identity is None:
            self._raise_fenced("it is not claimed by us")
        return self._identity

    def _check_may_write(self) -> None:
        if not self._may_write():
            self._identity = None
            self._raise_fenced("we do not lead (any more)")

    def _raise_fenced(self, why: str) -> NoReturn:
        raise FencedError(f"{self._name('write')}: {why}")

    def _name(self, what: str) -> str:
        return f"{what} as '{self.transactional_id}' on '{self._config.alias}'"
