"""A scrape as a whole: parts that fail or hang, rates, names with quotes, values that meet."""

from __future__ import annotations

import logging
import math
import threading

import pytest

from sparkmirror.errors import MirrorError
from sparkmirror.monitoring.metrics.jmx_names import jmx_name
from sparkmirror.monitoring.metrics.metrics_collector import MetricsCollector
from sparkmirror.monitoring.metrics.rates import CounterRates
from sparkmirror.monitoring.metrics.sample_sheet import SampleSheet
from sparkmirror.monitoring.metrics.timely_part import TimelyReader
from tests.monitoring.metrics.expositions import Exposition

UP = "sparkmirror_metrics_part_up"


def fine(sheet: SampleSheet) -> None:
    sheet.add("sparkmirror_build_info", 1.0, "9")


def unreachable(sheet: SampleSheet) -> None:
    raise MirrorError("the cluster is away")


def broken(sheet: SampleSheet) -> None:
    raise ZeroDivisionError


def test_a_part_that_fails_costs_only_itself(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    parts = {"unreachable": unreachable, "fine": fine, "broken": broken}
    found = Exposition(MetricsCollector(parts).text().decode())
    assert found.value("sparkmirror_build_info", version="9") == 1
    assert {name: found.value(UP, part=name) for name in parts} == {
        "unreachable": 0,
        "fine": 1,
        "broken": 0,
    }
    assert [record.levelname for record in caplog.records] == ["DEBUG", "ERROR"]


def test_a_reader_that_hangs_is_not_waited_for_and_not_called_twice() -> None:
    released, calls = threading.Event(), []

    def read() -> int:
        calls.append(1)
        assert released.wait(30)
        return 7

    reader = TimelyReader("jvm", read, patience_seconds=0.05)
    for _ in range(3):
        with pytest.raises(MirrorError, match="jvm: no figures within"):
            reader.read()
    assert calls == [1]
    released.set()
    patient = TimelyReader("jvm", read, patience_seconds=30)
    assert patient.read() == patient.read() == 7


def test_a_reader_that_fails_is_tried_again() -> None:
    results: list[Exception | None] = [MirrorError("gone"), AttributeError("a mistake"), None]

    def read() -> str:
        error = results.pop(0)
        if error is not None:
            raise error
        return "back"

    reader = TimelyReader("jvm", read, patience_seconds=30)
    with pytest.raises(MirrorError, match="gone"):
        reader.read()
    with pytest.raises(AttributeError):
        reader.read()
    assert reader.read() == "back"


def test_rates_are_those_of_the_last_minute() -> None:
    now = [0.0]
    rates = CounterRates(lambda: now[0])
    assert all(map(math.isnan, rates.per_second("t", 0, 0)))
    now[0] = 10.0
    assert rates.per_second("t", 100, 1000) == (10.0, 100.0)
    for now[0] in range(20, 200, 10):
        rates.per_second("t", 100, 1000)
    assert rates.per_second("t", 100, 1000) == (0.0, 0.0)


def test_a_counter_that_begins_again_has_no_negative_rate() -> None:
    now = [0.0]
    rates = CounterRates(lambda: now[0])
    rates.per_second("t", 100)
    now[0] = 10.0
    assert math.isnan(rates.per_second("t", 5)[0])
    now[0] = 20.0
    assert rates.per_second("t", 25) == (2.0,)


def test_rates_forget_what_is_not_here_any_more() -> None:
    now = [0.0]
    rates = CounterRates(lambda: now[0])
    rates.per_second("t", 100)
    rates.forget_others()
    rates.forget_others()
    now[0] = 10.0
    assert math.isnan(rates.per_second("t", 200)[0])


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("MirrorSourceConnector", "MirrorSourceConnector"),
        ("a-b_c.d %1", "a-b_c.d %1"),
        ("a->b.src", '"a->b.src"'),
        ("host:8083", '"host:8083"'),
        ('a"b\\c*d?', '"a\\"b\\\\c\\*d\\?"'),
        ("\u00e4", '"\u00e4"'),
    ],
)
def test_names_are_quoted_as_jmx_does(name: str, shown: str) -> None:
    assert jmx_name(name) == shown


def test_the_same_series_of_two_pairs_become_one() -> None:
    sheet = SampleSheet()
    counted, aged = "sparkmirror_flow_records_total", "sparkmirror_flow_lag_seconds"
    for records, seconds in ((1, 5.0), (2, 3.0)):
        sheet.add(counted, records, "a", "b", "c")
        sheet.add(aged, seconds, "a", "b", "c")
    found = {sample.name: sample.value for family in sheet.families() for sample in family.samples}
    assert found == {counted: 3, aged: 5.0}
