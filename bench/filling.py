"""Writes the data of a case to the source, once, and checks it in the source's own log."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
from collections.abc import Iterable, Mapping, Sequence

from confluent_kafka import Producer

from bench.cases import ONE_RECORD, CopyCase
from bench.log_batches import BatchShape, read_shape
from bench.single_records import write_single_records
from bench.stage import Stage
from sparkmirror.errors import KafkaError, MirrorError

# Values are slices of one random block, which is far larger than a compressor's window (lz4: 64
# KB), so slices that overlap by chance hardly compress.
_RANDOM_BLOCK_BYTES = 32 << 20
_DISTINCT_VALUES = 100_000
_FLUSH_SECONDS = 300.0
# One Python process is too slow to keep the broker busy.
_FILLERS = 2
_CITIES = ("Amsterdam", "Berlin", "Copenhagen", "Dublin", "Edinburgh", "Florence", "Geneva")


def fill_topic(stage: Stage, topic: str, case: CopyCase) -> BatchShape:
    """Write the topic of a case and return what the source stores."""
    records = case.record_count(stage.scale)
    each = records // case.partitions
    if case.records_per_batch == ONE_RECORD:
        port = stage.source.brokers[0].port
        write_single_records(port, topic, make_values(case), range(case.partitions), each)
    else:
        _fill_from_two_processes(stage, topic, case, each)
    shape = read_shape(stage.source_data_folder, topic)
    check_shape(shape, case, records)
    return shape


def _fill_from_two_processes(stage: Stage, topic: str, case: CopyCase, each: int) -> None:
    halves = [range(half, case.partitions, _FILLERS) for half in range(_FILLERS)]
    bootstrap = stage.source.bootstrap_servers
    with multiprocessing.get_context("spawn").Pool(_FILLERS) as pool:
        pool.starmap(_fill, [(bootstrap, topic, case, half, each) for half in halves])


def _fill(bootstrap: str, topic: str, case: CopyCase, partitions: range, each: int) -> None:
    """Write `each` records to every one of `partitions`. Runs in a separate process."""
    values = itertools.cycle(make_values(case))
    pairs = zip(itertools.cycle(partitions), values, strict=False)
    produce(bootstrap, topic, itertools.islice(pairs, each * len(partitions)), case.producer)


def check_shape(shape: BatchShape, case: CopyCase, records: int) -> None:
    """Raise MirrorError if the data differs from the description of the case."""
    least, most = case.records_per_batch
    codec = case.producer["compression.type"]
    wrong = (
        shape.records != records
        or not least <= shape.records_per_batch <= most
        or shape.codecs != (codec,)
    )
    if wrong:
        raise MirrorError(
            f"fill {case.name}: the source holds {shape}, {shape.records_per_batch:.1f} records "
            f"per batch; wanted {records} records, {least:g} to {most:g} per batch, {codec}"
        )


def make_values(case: CopyCase) -> Sequence[bytes]:
    """The values of a case, some 100,000 different ones, the same in every run."""
    chance = random.Random(case.name)
    if case.compressible:
        return [_order(chance, case.value_bytes) for _ in range(_DISTINCT_VALUES)]
    block = chance.randbytes(_RANDOM_BLOCK_BYTES)
    last = _RANDOM_BLOCK_BYTES - case.value_bytes
    starts = [chance.randrange(last) for _ in range(_DISTINCT_VALUES)]
    return [block[start : start + case.value_bytes] for start in starts]


def _order(chance: random.Random, size: int) -> bytes:
    """A value as applications write them: names that repeat, numbers that do not."""
    text = (
        f'{{"order":{chance.randrange(10**9)},"customer":"c{chance.randrange(10**6)}",'
        f'"amount":{chance.randrange(10**6) / 100},"city":"{chance.choice(_CITIES)}","note":"'
    )
    filler = f"{chance.randrange(10**9):x}"
    return (text + filler).ljust(size - 2, "-").encode()[: size - 2] + b'"}'


def produce(
    bootstrap: str,
    topic: str,
    records: Iterable[tuple[int, bytes]],
    settings: Mapping[str, str | int],
) -> None:
    """Write (partition, value) records to the source; return when all have left.

    Delivery reports would double the time: count the records of the source instead.
    """
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "queue.buffering.max.messages": 200_000,
            "queue.buffering.max.kbytes": 256 << 10,
            **settings,
        }
    )
    for partition, value in records:
        _produce_when_room(producer, topic, partition, value)
    left = producer.flush(_FLUSH_SECONDS)
    if left:
        raise KafkaError(f"fill {topic} on the source: {left} records not acknowledged")


def _produce_when_room(producer: Producer, topic: str, partition: int, value: bytes) -> None:
    while True:
        try:
            producer.produce(topic, value, partition=partition)
        except BufferError:
            producer.poll(0.1)
        else:
            return


def write_back() -> None:
    """Wait for the disk, so that no system is measured while another's data is written."""
    os.sync()
