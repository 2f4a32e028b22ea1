"""Where a copy continues when its position is not in the log, and what a flow's settings mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.batches.codecs import Codec
from sparkmirror.batches.forward import ForwardRules
from sparkmirror.errors import DataLossError
from sparkmirror.spark.copy.copy_partition import CopyPartition, choose_offset, forward_rules
from sparkmirror.types import TopicPartition
from sparkmirror.wire.fetch.offset_fetcher import Range
from tests.flows import make_flow

TP = TopicPartition("t", 3)


@pytest.mark.parametrize(
    ("position", "log", "reset", "expected", "lost"),
    [
        pytest.param(None, (5, 9), "earliest", 5, 0, id="new, earliest"),
        pytest.param(None, (5, 9), "latest", 9, 0, id="new, latest"),
        pytest.param(None, (0, 0), "earliest", 0, 0, id="new and empty"),
        pytest.param(None, (5, 9, 7), "by_duration:PT1H", 7, 0, id="new, by duration"),
        pytest.param(None, (5, 9), "by_duration:PT1H", 9, 0, id="new, all are older"),
        pytest.param(None, (5, 9, 3), "by_duration:PT1H", 5, 0, id="new, deleted since"),
        pytest.param(2, (5, 9, 7), "by_duration:PT1H", 7, 5, id="retention was faster, by time"),
        pytest.param(20, (5, 9, 7), "by_duration:PT1H", 7, 0, id="the log is shorter, by time"),
        pytest.param(2, (5, 9), "earliest", 5, 3, id="retention was faster"),
        pytest.param(2, (5, 9), "latest", 9, 7, id="retention was faster, latest"),
        pytest.param(20, (5, 9), "earliest", 5, 0, id="the log is shorter"),
        pytest.param(20, (5, 9), "latest", 9, 0, id="the log is shorter, latest"),
        pytest.param(7, (5, 9), "earliest", 7, 0, id="inside after all"),
        pytest.param(9, (5, 9), "latest", 9, 0, id="at the end after all"),
        pytest.param(5, (5, 9), "none", 5, 0, id="inside after all, none"),
    ],
)
def test_where_to_continue(
    position: int | None, log: tuple[int, ...], reset: str, expected: int, lost: int
) -> None:
    choice = choose_offset(TP, position, Range(*log), reset)
    assert (choice.next_offset, choice.lost_records) == (expected, lost)


@pytest.mark.parametrize(
    ("position", "log"), [(None, (5, 9)), (2, (5, 9)), (20, (5, 9))], ids=["new", "below", "above"]
)
def test_none_forbids_a_choice(position: int | None, log: tuple[int, int]) -> None:
    with pytest.raises(DataLossError, match=r"t-3.*auto\.offset\.reset=none"):
        choose_offset(TP, position, Range(*log), "none")


@pytest.mark.parametrize(
    ("position", "words"),
    [
        pytest.param(2, ["t-3", "2 to 4", "3 offsets lost", "continuing at 5"], id="lost"),
        pytest.param(20, ["t-3", "20", "5 to 9", "continuing at 5", "twice"], id="truncated"),
    ],
)
def test_what_is_lost_or_doubled_is_reported_exactly(position: int, words: list[str]) -> None:
    warning = choose_offset(TP, position, Range(5, 9), "earliest").warning
    assert [word for word in words if word not in warning] == []


@pytest.mark.parametrize(
    ("reset", "is_of_now"), [("earliest", False), ("latest", True), ("by_duration:PT1H", True)]
)
def test_what_the_clock_chose_is_to_be_stored_at_once(reset: str, is_of_now: bool) -> None:
    assert choose_offset(TP, None, Range(5, 9, 7), reset).is_of_now == is_of_now


@pytest.mark.parametrize("position", [None, 7])
def test_nothing_is_reported_when_nothing_is_wrong(position: int | None) -> None:
    assert choose_offset(TP, position, Range(5, 9), "earliest").warning == ""


def test_the_rules_of_a_flow(tmp_path: Path) -> None:
    flow = make_flow(tmp_path)
    assert forward_rules(flow.source) == ForwardRules()


def test_the_rules_of_a_flow_with_settings(tmp_path: Path) -> None:
    settings = {
        "a.consumer.isolation.level": "read_committed",
        "b.producer.compression.type": "zstd",
        "b.producer.max.request.size": "2000000",
    }
    rules = forward_rules(make_flow(tmp_path, settings).source)
    assert rules.read_committed
    assert rules.codec is Codec.ZSTD
    assert rules.max_batch_bytes == 2_000_000


@pytest.mark.parametrize(("codec", "level"), [("gzip", 9), ("lz4", 12), ("zstd", -5)])
def test_the_level_of_the_wanted_codec_is_used(tmp_path: Path, codec: str, level: int) -> None:
    settings = {
        "b.producer.compression.type": codec,
        f"b.producer.compression.{codec}.level": str(level),
    }
    rules = forward_rules(make_flow(tmp_path, settings).source)
    assert (rules.codec, rules.codec_level) == (Codec.parse(codec), level)


def test_a_codec_without_levels_has_none(tmp_path: Path) -> None:
    settings = {"b.producer.compression.type": "snappy", "b.producer.compression.zstd.level": "9"}
    assert forward_rules(make_flow(tmp_path, settings).source).codec_level is None


def test_a_limit_of_the_target_is_remembered_and_only_ever_smaller() -> None:
    partition = CopyPartition(TP, TP, ForwardRules())
    partition.limit_batches(400_000)
    assert partition.rules.max_batch_bytes == 400_000
    assert partition.rules.merge_into_bytes == 200_000
    partition.limit_batches(500_000)
    assert partition.rules.max_batch_bytes == 400_000
    partition.limit_batches(100_000)
    assert partition.rules.max_batch_bytes == 100_000
