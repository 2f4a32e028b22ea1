"""Names on the command line, and sizes."""

from __future__ import annotations

import pytest

from bench.__main__ import parse_options, systems_of
from bench.cases import (
    CASES,
    DATA_PARTITIONS,
    MM2_DEFAULT,
    NO_MIRROR,
    SPARKMIRROR,
    SYSTEMS,
    WAN_CASE,
    WAN_PARTITIONS,
    CopyCase,
    LatencyCase,
    ScaleCase,
    parse_cases,
    parse_systems,
)
from bench.scaling import group_partitions, scale_topics
from bench.targets import TARGETS
from bench.wan import data_of

SCALES = ["scale-10", "scale-100", "scale-1000", "scale-10000"]


def test_there_are_the_cases_that_results_are_compared_by() -> None:
    copies = ["1k-none", "1k-tls", "100b-lz4", "tiny"]
    others = [
        "latency-1000",
        "latency-20000",
        "scale-10",
        "scale-100",
        "scale-1000",
        "start",
        "refresh",
    ]
    assert list(CASES) == [*copies, *others, "wan", "scale-10000"]


def test_latency_is_measured_beside_mm2_by_default_and_no_mirror() -> None:
    assert systems_of(CASES["1k-tls"], list(SYSTEMS)) == list(SYSTEMS)
    assert systems_of(CASES["1k-none"], [SPARKMIRROR]) == [SPARKMIRROR]
    expected = [SPARKMIRROR, MM2_DEFAULT, NO_MIRROR]
    assert systems_of(CASES["latency-1000"], list(SYSTEMS)) == expected


def test_the_largest_scale_is_measured_beside_mm2_by_default() -> None:
    assert systems_of(CASES["scale-1000"], list(SYSTEMS)) == list(SYSTEMS)
    assert systems_of(CASES["scale-10000"], list(SYSTEMS)) == [SPARKMIRROR, MM2_DEFAULT]


def test_every_topic_of_the_largest_scale_is_read_by_one_group() -> None:
    case = CASES["scale-10000"]
    assert isinstance(case, ScaleCase)
    names = scale_topics(case)
    groups = group_partitions(case, names)
    read = [tp for partitions in groups.values() for tp in partitions]
    assert len(groups) == 200
    assert {len(partitions) for partitions in groups.values()} == {50}
    assert len(set(read)) == len(read) == 10_000


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param("latency", ["latency-1000", "latency-20000"], id="both rates"),
        pytest.param("tiny,1k-none", ["tiny", "1k-none"], id="in the order asked for"),
        pytest.param("scale", SCALES, id="all sizes"),
        pytest.param("scale-100,scale", ["scale-100", *SCALES[:1], *SCALES[2:]], id="each once"),
    ],
)
def test_cases_are_found_by_name(text: str, names: list[str]) -> None:
    assert [case.name for case in parse_cases(text)] == names


def test_unknown_case_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ValueError, match="unknown case 'fast'; there are 1k-none, "):
        parse_cases("tiny,fast")


def test_command_line_asks_for_everything_unless_told() -> None:
    options = parse_options([])
    assert options.cases == list(CASES.values())
    assert options.systems == list(SYSTEMS)
    assert (options.scale, options.rounds) == (1.0, 3)
    assert options.json_path.parts[-3:] == ("bench", "out", "latest.json")
    assert options.table_path.parts[-2:] == ("bench", "RESULTS.md")


def test_command_line_explains_a_wrong_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_options(["--cases", "fast"])
    assert "unknown case 'fast'; there are" in capsys.readouterr().err


def test_systems_are_found_by_name() -> None:
    assert parse_systems(",".join(SYSTEMS)) == list(SYSTEMS)


def test_unknown_system_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown system 'mm1'"):
        parse_systems("sparkmirror,mm1")


@pytest.mark.parametrize(
    ("scale", "records"),
    [
        pytest.param(1.0, 7_000_000, id="full"),
        pytest.param(0.00119, 8_328, id="the same number in every partition"),
        pytest.param(0.0, 1_000, id="never too few to measure"),
    ],
)
def test_record_count_follows_the_scale(scale: float, records: int) -> None:
    case = CASES["1k-none"]
    assert isinstance(case, CopyCase)
    assert case.record_count(scale) == records
    assert case.record_count(scale) % DATA_PARTITIONS == 0


@pytest.mark.parametrize(
    ("name", "scale", "seconds"),
    [
        pytest.param("latency-1000", 1.0, (60.0, 10.0), id="latency, full"),
        pytest.param("latency-1000", 5.0, (60.0, 10.0), id="latency, never longer"),
        pytest.param("latency-1000", 0.5, (30.0, 5.0), id="latency, shorter"),
        pytest.param("scale-10", 0.0, (3.0, 3.0), id="scale, never too short"),
    ],
)
def test_times_follow_the_scale(name: str, scale: float, seconds: tuple[float, float]) -> None:
    case = CASES[name]
    assert isinstance(case, LatencyCase | ScaleCase)
    assert case.seconds(scale) == seconds


def test_wan_has_a_line_for_every_target() -> None:
    lines = [line.name for line in WAN_CASE.lines]
    assert len(lines) == len(set(lines)) == 10
    measured = {*lines, WAN_CASE.live.name, *CASES} - {WAN_CASE.name}
    assert {target.case for target in TARGETS} <= measured


def test_wan_data_has_as_many_records_in_every_partition() -> None:
    for partitions in WAN_PARTITIONS:
        data = data_of(WAN_CASE, partitions)
        assert data.partitions == partitions
        assert data.record_count(0.37) % partitions == 0
