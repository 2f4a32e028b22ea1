"""Every line about a flow begins with connector and task, whatever its call put before its text."""

from __future__ import annotations

import logging
import re
import threading

import pytest

from sparkmirror.events import EventKind, event
from sparkmirror.logs.located_text import locate
from sparkmirror.logs.places import (
    NOWHERE,
    LogPlace,
    at_place,
    carried,
    current_place,
    place_of,
    place_of_label,
)
from tests.logs.records import make_record, marked

TASK = LogPlace("mirror", 0, "a->b")
WORKER = LogPlace("mirror", None, "a->b")
# How programs find connector and task in Connect's own log, as in the documents of Confluent and
# in grok patterns that users share.
OF_CONNECT = re.compile(r"^\[(?P<connector>.+?)\|(?P<task>worker|task-\d+)(\|offsets)?\] ")


@pytest.mark.parametrize(
    ("place", "begin"),
    [
        pytest.param(TASK, "[mirror|task-0] a->b: ", id="task"),
        pytest.param(WORKER, "[mirror|worker] a->b: ", id="connector"),
        pytest.param(LogPlace("mirror"), "[mirror|worker] ", id="flow not known"),
        pytest.param(
            LogPlace("a->b.MirrorSourceConnector", 12, "a->b"),
            "[a->b.MirrorSourceConnector|task-12] ",
            id="flow in the connector's name, as Strimzi has it",
        ),
        pytest.param(LogPlace(flow="a->b"), "a->b: ", id="flow only"),
        pytest.param(NOWHERE, "", id="nothing"),
    ],
)
def test_a_line_begins_with_its_place(place: LogPlace, begin: str) -> None:
    assert str(place) == begin
    if place.connector:
        found = OF_CONNECT.match(begin)
        assert found is not None
        task = "worker" if place.task is None else f"task-{place.task}"
        assert found.group("connector", "task") == (place.connector, task)


@pytest.mark.parametrize(
    ("here", "template", "values", "place", "text"),
    [
        pytest.param(TASK, "%s waits", ("t-0",), TASK, "t-0 waits", id="no label"),
        pytest.param(TASK, "[%s] x", ("a->b|mirror-0",), TASK, "x", id="own task"),
        pytest.param(TASK, "[%s] x", ("mirror-0",), TASK, "x", id="own task without its flow"),
        pytest.param(WORKER, "[%s] x", ("a->b",), WORKER, "x", id="own flow"),
        pytest.param(WORKER, "[%s] x", ("a->b|mirror groups",), WORKER, "x", id="own thread"),
        pytest.param(WORKER, "[%s] x", ("a->b|mirror-7",), LogPlace("mirror", 7, "a->b"), "x",
                     id="a task of the connector"),
        pytest.param(WORKER, "%s", ("a->b: 5 records/s",), WORKER, "5 records/s",
                     id="summary of the flow"),
        pytest.param(TASK, "%s", ("a->b|mirror-0: no",), TASK, "no", id="task and its error"),
        pytest.param(NOWHERE, "[%s] x", ("a->b|m-3",), LogPlace("m", 3, "a->b"), "x",
                     id="a task, of a thread without a place"),
        pytest.param(NOWHERE, "[%s] x", ("a->b|m-3#0123abcd",), LogPlace("m", 3, "a->b"), "x",
                     id="a Spark job"),
        pytest.param(NOWHERE, "[%s] x", ("a->b|m",), LogPlace("m", None, "a->b"), "x",
                     id="a connector"),
        pytest.param(NOWHERE, "[%s] x", ("a->b",), LogPlace(flow="a->b"), "x", id="a flow"),
        pytest.param(TASK, "[%s] x", ("c->d",), LogPlace(flow="c->d"), "x", id="another flow"),
        pytest.param(NOWHERE, "connector %s: %s", ("m", "paused"), LogPlace("m"),
                     "connector: paused", id="connector by REST"),
        pytest.param(NOWHERE, "connector %s started", ("a->b.M-1",), LogPlace("a->b.M-1"),
                     "connector started", id="connector with an arrow and a number"),
        pytest.param(NOWHERE, "connector %s started", ("a->b|M",), LogPlace("M", None, "a->b"),
                     "connector started", id="connector of dedicated mode"),
        pytest.param(NOWHERE, "task %s failed: %s", ("a->b|M-1", "no"), LogPlace("M", 1, "a->b"),
                     "task failed: no", id="task of dedicated mode"),
        pytest.param(TASK, "task %s failed: %s", ("mirror-0", "no"), TASK, "task failed: no",
                     id="task of Connect mode"),
        pytest.param(NOWHERE, "[%s] x", ("connect-configs",), NOWHERE, "[connect-configs] x",
                     id="a topic is no place"),
        pytest.param(NOWHERE, "[%s on 'b'] x", ("a-mm2",), NOWHERE, "[a-mm2 on 'b'] x",
                     id="a group is no place"),
        pytest.param(NOWHERE, "[Worker clientId=connect-1, groupId=%s] Herder %s", ("g", "started"),
                     NOWHERE, "[Worker clientId=connect-1, groupId=g] Herder started",
                     id="Connect's own words"),
        pytest.param(TASK, "%s lacks %s", ("one",), TASK, "%s lacks %s ('one',)",
                     id="a call with a mistake"),
    ],
)  # fmt: skip
def test_labels_become_the_place(
    here: LogPlace, template: str, values: tuple[object, ...], place: LogPlace, text: str
) -> None:
    with at_place(here):
        assert locate(make_record(template, *values)) == (place, text)


def test_a_mark_says_more_than_the_thread() -> None:
    mark = event(EventKind.FAILED, flow="c->d", connector="other", task="other-2")
    with at_place(TASK):
        assert locate(marked("x", mark=mark)).place == LogPlace("other", 2, "c->d")
        mark = event(EventKind.FAILED, task="5")
        assert locate(marked("x", mark=mark)).place == LogPlace("mirror", 5, "a->b")


@pytest.mark.parametrize(
    ("settings", "flow"),
    [
        ({"source.cluster.alias": "a", "target.cluster.alias": "b"}, "a->b"),
        ({"source.cluster.alias": "a"}, ""),
        ({"source.cluster.alias": "${file:x:y}", "target.cluster.alias": "b"}, ""),
        ({"source.cluster.alias": None}, ""),
    ],
)
def test_a_connectors_settings_name_its_flow(settings: dict[str, str | None], flow: str) -> None:
    assert place_of("m", settings, 1) == LogPlace("m", 1, flow)


def test_threads_carry_the_place_of_who_made_them() -> None:
    found = []
    with at_place(TASK):
        thread = threading.Thread(target=carried(lambda: found.append(current_place())))
    thread.start()
    thread.join()
    assert found == [TASK]
    assert current_place() == NOWHERE


def test_labels_that_are_no_connector() -> None:
    for label in ("worker", "connect-configs", "x|y-1", "a -> b", ""):
        assert place_of_label(label) is None


def test_libraries_lines_have_places_too() -> None:
    record = logging.LogRecord("py4j", logging.WARNING, "", 0, "gone", None, None)
    with at_place(TASK):
        assert locate(record) == (TASK, "gone")
