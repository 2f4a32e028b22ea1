"""Codecs: Kafka's framings, both ways, and a limit on what comes out."""

from __future__ import annotations

import gzip
import random

import cramjam
import lz4.frame
import pytest
import zstandard
from kafka import codec as kafka_python

from sparkmirror.batches.codecs import Codec, Data
from sparkmirror.errors import BatchError

COMPRESSING = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
TEXT = b"the quick brown fox jumps over the lazy dog; " * 6000  # several blocks of any codec
NOISE = random.Random(3).randbytes(200_000)

every_codec = pytest.mark.parametrize("codec", COMPRESSING, ids=lambda codec: codec.name)


@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name)
@pytest.mark.parametrize("data", [b"", b"x", TEXT, NOISE], ids=["empty", "byte", "text", "noise"])
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview], ids=lambda kind: kind.__name__)
def test_data_comes_back(codec: Codec, data: bytes, kind: type) -> None:
    packed = codec.compress(kind(data))
    assert bytes(codec.decompress(kind(bytes(packed)))) == data


@every_codec
def test_levels_change_the_output_not_the_data(codec: Codec) -> None:
    packed = codec.compress(TEXT, 1)
    assert bytes(codec.decompress(packed)) == TEXT
    assert len(packed) < len(TEXT) / 4


def test_lz4_levels_are_javas() -> None:
    fast, default = Codec.LZ4.compress(TEXT), Codec.LZ4.compress(TEXT, 9)
    assert fast == default
    thorough = [Codec.LZ4.compress(TEXT, level) for level in (1, 3, 12, 16, 17)]
    assert thorough[0] == thorough[1] != fast
    assert thorough[3] == thorough[4]
    assert {bytes(Codec.LZ4.decompress(packed)) for packed in thorough} == {TEXT}


@every_codec
def test_bomb_is_refused_at_the_limit(codec: Codec) -> None:
    bomb = codec.compress(bytes(3_000_000))
    assert len(codec.decompress(bomb, 3_000_000)) == 3_000_000
    with pytest.raises(BatchError, match="more than the allowed 2999999 bytes"):
        codec.decompress(bomb, 2_999_999)


def _raw_snappy(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


def _broken_lz4_checksum(data: bytes) -> bytes:
    frame = bytearray(lz4.frame.compress(data, block_linked=False, store_size=False))
    frame[6] ^= 0x55
    return bytes(frame)


FOREIGN = {
    "gzip-two-members": (Codec.GZIP, lambda d: gzip.compress(d[:99]) + gzip.compress(d[99:])),
    "snappy-raw": (Codec.SNAPPY, _raw_snappy),
    "lz4-linked-blocks": (Codec.LZ4, lambda d: lz4.frame.compress(d, block_linked=True)),
    "lz4-content-size": (Codec.LZ4, lambda d: lz4.frame.compress(d, block_linked=False)),
    "lz4-block-checksums": (
        Codec.LZ4,
        lambda d: lz4.frame.compress(d, block_linked=False, block_checksum=True),
    ),
    "lz4-content-checksum": (
        Codec.LZ4,
        lambda d: lz4.frame.compress(d, block_linked=False, content_checksum=True),
    ),
    "lz4-4-mb-blocks": (
        Codec.LZ4,
        lambda d: lz4.frame.compress(d, block_linked=False, block_size=lz4.frame.BLOCKSIZE_MAX4MB),
    ),
    "lz4-wrong-header-checksum": (Codec.LZ4, _broken_lz4_checksum),
    "zstd-without-size": (
        Codec.ZSTD,
        lambda d: zstandard.ZstdCompressor(write_content_size=False).compress(d),
    ),
    "zstd-checksum": (
        Codec.ZSTD,
        lambda d: zstandard.ZstdCompressor(write_checksum=True).compress(d),
    ),
    "zstd-two-frames": (
        Codec.ZSTD,
        lambda d: zstandard.compress(d[:99]) + zstandard.compress(d[99:]),
    ),
    "zstd-empty-frame": (
        Codec.ZSTD,
        lambda d: zstandard.compress(d) + zstandard.compress(b""),
    ),
    "kafka-python-gzip": (Codec.GZIP, kafka_python.gzip_encode),
    "kafka-python-lz4": (Codec.LZ4, kafka_python.lz4_encode),
    "kafka-python-zstd": (Codec.ZSTD, kafka_python.zstd_encode),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_framings_of_other_clients_are_read(name: str) -> None:
    codec, pack = FOREIGN[name]
    for data in (b"short", TEXT, NOISE):
        assert bytes(codec.decompress(pack(data))) == data


@pytest.mark.parametrize(
    ("codec", "read"),
    [
        (Codec.GZIP, kafka_python.gzip_decode),
        (Codec.LZ4, kafka_python.lz4_decode),
        (Codec.ZSTD, kafka_python.zstd_decode),
    ],
    ids=["gzip", "lz4", "zstd"],
)
def test_kafka_python_reads_our_framing(codec: Codec, read: object) -> None:
    assert callable(read)
    assert bytes(read(bytes(codec.compress(TEXT)))) == TEXT


def test_snappy_is_framed_as_java_does() -> None:
    packed = bytes(Codec.SNAPPY.compress(TEXT[:70_000]))
    assert packed[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    sizes = []
    at = 16
    while at < len(packed):
        length = int.from_bytes(packed[at : at + 4], "big")
        sizes.append(len(cramjam.snappy.decompress_raw(packed[at + 4 : at + 4 + length])))
        at += 4 + length
    assert sizes == [32768, 32768, 4464]


def test_lz4_blocks_are_independent() -> None:
    flags = Codec.LZ4.compress(TEXT)[4]
    assert flags & 0x20


@every_codec
@pytest.mark.parametrize("cut", [1, 7, 100])
def test_cut_data_is_never_taken_for_all(codec: Codec, cut: int) -> None:
    packed = bytes(codec.compress(TEXT))[:-cut]
    assert _decompressed_or_none(codec, packed) != TEXT


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD], ids=lambda codec: codec.name)
def test_a_frame_without_its_end_is_refused(codec: Codec) -> None:
    packed = bytes(codec.compress(TEXT))
    for size in (5, 20, len(packed) // 2, len(packed) - 1):
        with pytest.raises(BatchError, match=f"decompress {codec.name.lower()}"):
            codec.decompress(packed[:size])


@pytest.mark.timeout(20)
def test_very_many_gzip_members_take_no_longer_than_their_bytes() -> None:
    members = gzip.compress(b"") * 200_000 + gzip.compress(TEXT)
    assert Codec.GZIP.decompress(members) == TEXT


@every_codec
def test_damaged_data_gives_only_batch_errors(codec: Codec) -> None:
    rng = random.Random(5)
    good = bytes(codec.compress(TEXT[:5000]))
    refused = 0
    for _ in range(400):
        bad = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        refused += _decompressed_or_none(codec, bytes(bad)) is None
    assert refused > 20


def _decompressed_or_none(codec: Codec, packed: bytes) -> Data | None:
    try:
        return codec.decompress(packed, 1 << 20)
    except BatchError:
        return None


@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name)
def test_codec_is_found_by_name_and_number(codec: Codec) -> None:
    assert Codec.parse(codec.name.lower()) is codec
    assert Codec.of(int(codec)) is codec


def test_unknown_codecs_are_refused() -> None:
    with pytest.raises(BatchError, match="brotli"):
        Codec.parse("brotli")
    with pytest.raises(BatchError, match="find codec 5"):
        Codec.of(5)
