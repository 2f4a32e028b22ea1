"""Sequence numbers of idempotent batches: who gets which, and when numbering starts over.

Runs on: executor, on the event loop's thread.

A broker drops a batch that it has stored before by producer id, epoch and sequence number, and
rejects one that leaves a gap (KIP-98). Both hold only while it remembers the producer. It forgets
one whose last batch is older than producer.id.expiration.ms (KIP-854: a day), looking every ten
minutes; and the age is that of the batch's records (ProducerStateManager.isProducerExpired compares
max timestamps). A mirror that copies last week's records is forgotten at the next look. From a
producer that it does not remember, a broker accepts any number as the first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from sparkmirror.batches.forward import stamp
from sparkmirror.errors import DeniedError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.produce.record_accumulator import ProducePartition, ProducerBatch
from sparkmirror.wire.produce.transaction_manager import TransactionManager
from sparkmirror.wire.protocol.error_codes import (
    INVALID_PRODUCER_EPOCH,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    UNKNOWN_PRODUCER_ID,
)

log = logging.getLogger(__name__)

# Sequence numbers wrap around to 0 after this one.
LAST_SEQUENCE = (1 << 31) - 1
# A partition that had nothing in flight for longer sends one batch and waits for its response. The
# broker may have forgotten us after any pause (see above), so shorter would be safer still. But
# shorter pauses are the rhythm of a partition that flows, where each would cost a round trip; after
# a second without records, one round trip for the second batch and later is not noticed.
QUIET_SECONDS = 1.0
FORGOTTEN = (
    "the broker lost track of our sequence numbers; the producer continues with a new producer id "
    "(batches without a response may be there twice)"
)
SKIPPED = (
    "a skipped batch was sent more than once, and an earlier copy may still be stored; the "
    "producer continues with a new producer id, so that this copy cannot hide the next batch"
)

# The broker has lost what it knew of a producer: it continues with a new id, as in KIP-360.
LOST = (
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    UNKNOWN_PRODUCER_ID,
    INVALID_PRODUCER_EPOCH,
)
Numbers = tuple[int, int, int]
"""Producer id, epoch and next sequence of a partition."""


class Sequences:
    """Numbers batches, under the producer id that their partition began with."""

    def __init__(
        self,
        cluster: NetworkClient,
        timeout: float,
        on_known: Callable[[], None],
        on_denied: Callable[[DeniedError], None],
        *,
        idempotent: bool,
    ) -> None:
        self.idempotent = idempotent
        self._identity = TransactionManager(cluster, timeout, on_known, on_denied)
        # Of removed partitions. Starting again at 0 would repeat the numbers of batches that the
        # broker has: it would acknowledge the new ones and store nothing.
        self._retired: dict[TopicPartition, Numbers] = {}

    @property
    def is_ready(self) -> bool:
        """True when batches can be numbered; otherwise `ask`."""
        return not self.idempotent or self._identity.current is not None

    def ask(self) -> None:
        """Ask for a producer id if one is needed."""
        if self.idempotent:
            self._identity.ask()

    def retire(self, partition: ProducePartition) -> None:
        """Keep the numbers of a partition that is removed."""
        numbers = (partition.producer_id, partition.epoch, partition.next_sequence)
        self._retired[partition.tp] = numbers

    def take_retired(self, tp: TopicPartition) -> Numbers | tuple[()]:
        """The numbers of a partition that comes back; nothing for a new one."""
        return self._retired.pop(tp, ())

    def number(self, partition: ProducePartition, batch: ProducerBatch[Any]) -> None:
        """Stamp a batch that is about to leave."""
        if batch.sequence >= 0:
            batch.is_resent = True  # same bytes again
            return
        if not self.idempotent:
            stamp(batch.view, -1, -1, -1)
            return
        if partition.producer_id < 0:
            assert self._identity.current is not None
            partition.producer_id, partition.epoch = self._identity.current
        batch.sequence = partition.next_sequence
        stamp(batch.view, partition.producer_id, partition.epoch, batch.sequence)
        partition.next_sequence = (batch.sequence + batch.count) % (LAST_SEQUENCE + 1)

    def free(
        self,
        partition: ProducePartition,
        batch: ProducerBatch[Any],
        replacements: list[ProducerBatch[Any]],
    ) -> None:
        """A rejected batch is replaced: those after it are numbered from its number on.

        The broker cannot have accepted any later one, because that would have left a gap. But an
        earlier copy of a batch that was sent more than once may be stored, or be stored later: its
        response was lost, and limits change between two attempts. Its halves have the same numbers
        together; a batch that moves up to a skipped one's number would be taken for that copy, and
        be acknowledged without being stored.
        """
        moves_up = sum(part.count for part in replacements) != batch.count
        if batch.is_resent and moves_up and self.idempotent:
            partition.renew = SKIPPED
        partition.renumber_from = max(batch.sequence, 0)

    def renumber(self, partition: ProducePartition, what: str) -> None:
        """Give new numbers: after a rejection, or under a producer id that no broker has seen."""
        if partition.renew:
            log.warning("%s: %s", what, partition.renew)
            partition.renew = ""
            partition.producer_id = -1
            partition.renumber_from = 0
            self._identity.renew()
        if partition.renumber_from is not None:
            partition.next_sequence = partition.renumber_from
            partition.renumber_from = None
            for batch in partition.queue:
                batch.sequence = -1
