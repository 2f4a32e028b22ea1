"""What forwarding takes and returns: value types without behaviour."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from sparkmirror.batches.codecs import DEFAULT_LIMIT_BYTES, Codec

Runs = tuple[tuple[int, int], ...]


class Reason(enum.Enum):
    """Why batches took another way than the fast one; counted in source batches."""

    RESUME = "resume"  # records below the position were cut off
    OFFSET_GAPS = "offset-gaps"  # compaction removed records
    LOG_APPEND_TIME = "log-append-time"  # record timestamps had to become the append time
    OLD_MAGIC = "old-magic"  # message format 0 or 1
    TOO_LARGE = "too-large"  # split for the target
    MERGED = "merged"  # tiny, merged with its neighbours
    JOINED = "joined"  # joined with those after it, for a far target
    RECODED = "recoded"  # recompressed with the codec the user set
    CONTROL = "control"  # transaction marker: dropped
    ABORTED = "aborted"  # data of an aborted transaction: dropped
    EMPTY = "empty"  # nothing left after compaction: dropped


@dataclass(slots=True)
class OutgoingBatch:
    """One batch for the target. Valid on the wire after `stamp`, and only then.

    `view` may lie in the receive buffer: the buffer must stay untouched until the
    response for the batch has come. Offsets are upstream ones; without `runs` they are
    first_offset .. last_offset without a gap, else `runs` lists (first offset, count) of the
    records in order.
    """

    view: memoryview | bytearray
    first_offset: int
    last_offset: int
    count: int
    base_timestamp: int
    max_timestamp: int
    runs: Runs | None
    size: int


@dataclass(frozen=True, slots=True)
class ForwardRules:
    """How to prepare the batches of one partition.

    read_committed          drop the data of aborted transactions
    codec, codec_level      compress every batch so; None: leave each as it is
    max_batch_bytes         split batches larger than this, the target's max.message.bytes
    merge_below_bytes       merge neighbouring uncompressed batches below this size; 0: never
    merge_compressed_below_bytes   the same for compressed ones, which cost far more to merge
    merge_below_records     only batches of fewer records than this: each costs about 1 us to merge
    merge_into_bytes        upper bound of the uncompressed records of a merged batch
    keep_append_time        False when the target topic stamps append times itself (KIP-32):
                            LogAppendTime batches then pass untouched
    check_crcs              compare the CRC of every batch from the source
    limit_bytes             reject batches whose records are larger than this when decompressed
    """

    read_committed: bool = False
    codec: Codec | None = None
    codec_level: int | None = None
    max_batch_bytes: int | None = None
    merge_below_bytes: int = 16 << 10
    merge_compressed_below_bytes: int = 2 << 10
    merge_below_records: int = 64
    # Half of Kafka's default max.message.bytes (1048588): incompressible data grows a little.
    merge_into_bytes: int = 512 << 10
    keep_append_time: bool = True
    check_crcs: bool = True
    limit_bytes: int = DEFAULT_LIMIT_BYTES


@dataclass(slots=True)
class Plan:
    """The batches to produce, in order, and where the source is read next.

    `next_offset` is past everything that was read, dropped batches included; `leader_epoch` is of
    the last batch that was read, or -1 if it has none (old formats). `cut_bytes` is the
    size of the first batch when not even that one came whole: then nothing else is set, and the
    next fetch must ask for at least as much.
    """

    batches: list[OutgoingBatch] = field(default_factory=list)
    next_offset: int = 0
    aborted_records: int = 0
    cut_bytes: int = 0
    leader_epoch: int = -1
