"""Batches read from log segments, and data that is not what a case says."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from bench.cases import CASES, CopyCase
from bench.filling import check_shape, make_values
from bench.log_batches import BatchShape, read_shape
from sparkmirror.errors import MirrorError

LZ4 = 3


def batch(count: int, body_bytes: int, codec: int = 0) -> bytes:
    header = bytearray(61)
    struct.pack_into(">i", header, 8, 49 + body_bytes)
    struct.pack_into(">h", header, 21, codec | 0x10)
    struct.pack_into(">i", header, 57, count)
    return bytes(header) + bytes(body_bytes)


def store(folder: Path, partition: str, segment: str, *batches: bytes) -> None:
    (folder / partition).mkdir(exist_ok=True)
    (folder / partition / segment).write_bytes(b"".join(batches))


def test_shape_covers_all_partitions_and_segments_of_the_topic_only(tmp_path: Path) -> None:
    store(tmp_path, "t-0", "00.log", batch(10, 100), batch(20, 200))
    store(tmp_path, "t-0", "30.log", batch(30, 39))
    store(tmp_path, "t-11", "00.log", batch(40, 0, LZ4))
    store(tmp_path, "t-other-0", "00.log", batch(1000, 0))
    shape = read_shape(tmp_path, "t")
    assert shape == BatchShape(4, 100, 4 * 61 + 339, ("lz4", "none"))
    assert shape.records_per_batch == 25.0
    assert shape.bytes_per_batch == pytest.approx(145.75)


def test_topic_without_batches_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MirrorError, match="read the batches of t: none in "):
        read_shape(tmp_path, "t")


def copy_case(name: str) -> CopyCase:
    case = CASES[name]
    assert isinstance(case, CopyCase)
    return case


def test_data_that_is_as_wanted_is_accepted() -> None:
    check_shape(BatchShape(10, 1250, 1_300_000, ("none",)), copy_case("1k-none"), 1250)


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(BatchShape(10, 1249, 1_300_000, ("none",)), id="a record is missing"),
        pytest.param(BatchShape(100, 1250, 1_300_000, ("none",)), id="batches are too small"),
        pytest.param(BatchShape(10, 1250, 1_300_000, ("lz4",)), id="another codec"),
    ],
)
def test_data_that_is_not_as_wanted_is_refused(shape: BatchShape) -> None:
    with pytest.raises(MirrorError, match="fill 1k-none: the source holds"):
        check_shape(shape, copy_case("1k-none"), 1250)


@pytest.mark.parametrize("name", ["1k-none", "100b-lz4", "tiny"])
def test_values_have_the_size_of_the_case(name: str) -> None:
    case = copy_case(name)
    values = make_values(case)
    assert {len(value) for value in values} == {case.value_bytes}
    assert len(set(values)) > 0.99 * len(values)
