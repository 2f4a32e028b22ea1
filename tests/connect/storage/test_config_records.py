"""What the records of the config topic add up to."""

from __future__ import annotations

import json
import logging

import pytest

from sparkmirror.connect.storage.config_records import (
    ConfigState,
    KeyValue,
    RestartRequest,
    connector_records,
    deletion_records,
    logger_record,
    restart_record,
    target_state_record,
    task_records,
)


def state_of(*rows: KeyValue) -> ConfigState:
    state = ConfigState()
    for key, value in rows:
        state.apply(key, value)
    return state


def test_bytes_are_those_of_connect() -> None:
    assert connector_records("c", {"a": "1", "b": None}, "STOPPED") == [
        (b"target-state-c", b'{"state":"PAUSED","state.v2":"STOPPED"}'),
        (b"connector-c", b'{"properties":{"a":"1","b":null}}'),
    ]
    assert task_records("c", [{"x": "y"}]) == [
        (b"task-c-0", b'{"properties":{"x":"y"}}'),
        (b"commit-c", b'{"tasks":1}'),
    ]
    assert restart_record(RestartRequest("c", True, False)) == (
        b"restart-connector-c",
        b'{"include-tasks":true,"only-failed":false}',
    )
    assert logger_record("org.x", "DEBUG") == (b"logger-cluster-org.x", b'{"level":"DEBUG"}')


def test_a_connector_runs_unless_it_is_told_otherwise() -> None:
    snapshot = state_of(*connector_records("c", {"a": "1"}, None)).snapshot()
    assert snapshot.connectors == {"c": {"a": "1"}}
    assert snapshot.target_states == {"c": "STARTED"}
    assert snapshot.tasks == {"c": ()}


@pytest.mark.parametrize("state", ["STARTED", "PAUSED", "STOPPED"])
def test_target_states(state: str) -> None:
    snapshot = state_of(*connector_records("c", {}, state)).snapshot()
    assert snapshot.target_states == {"c": state}


def test_a_state_of_a_worker_before_3_5() -> None:
    rows = [*connector_records("c", {}, None), (b"target-state-c", b'{"state":"PAUSED"}')]
    assert state_of(*rows).snapshot().target_states == {"c": "PAUSED"}


def test_a_deleted_connector_leaves_nothing() -> None:
    rows = [*connector_records("c", {}, "PAUSED"), *task_records("c", [{"x": "1"}])]
    again = connector_records("c", {"b": "2"}, None)
    snapshot = state_of(*rows, *deletion_records("c"), *again).snapshot()
    assert (snapshot.connectors, snapshot.tasks) == ({"c": {"b": "2"}}, {"c": ()})
    assert snapshot.target_states == {"c": "STARTED"}


def test_tasks_count_when_they_are_committed() -> None:
    tasks = task_records("a-1", [{"n": "0"}, {"n": "1"}])
    created = connector_records("a-1", {}, None)
    assert state_of(*created, *tasks[:-1]).snapshot().tasks == {"a-1": ()}
    assert state_of(*created, *tasks).snapshot().tasks == {"a-1": ({"n": "0"}, {"n": "1"})}


def test_fewer_tasks_than_were_committed_are_none() -> None:
    tasks = task_records("c", [{"n": "0"}, {"n": "1"}])
    rows = [*connector_records("c", {}, None), tasks[0], tasks[2]]
    assert state_of(*rows).snapshot().tasks == {"c": ()}


def test_tasks_of_a_connector_that_compaction_took_away() -> None:
    rows = [*task_records("c", [{"n": "0"}]), *connector_records("c", {}, None)]
    assert state_of(*rows).snapshot().tasks == {"c": ()}


def test_a_restart_is_asked_for_once() -> None:
    state = ConfigState()
    assert state.apply(*restart_record(RestartRequest("c", False, True))) == RestartRequest(
        "c", False, True
    )
    assert state.apply(b"restart-connector-c", None) is None


def test_loggers() -> None:
    assert state_of(logger_record("x", "WARN")).snapshot().loggers == {"x": "WARN"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"session-key", b'{"key":"s","algorithm":"HmacSHA256","creation-timestamp":1}'),
        (b"tasks-fencing-c", b'{"task-count":1}'),
        (b"connector-c", b"no json"),
        (b"connector-c", b"[]"),
        (b"connector-c", b'{"properties":1}'),
        (b"target-state-c", b'{"state":"ODD"}'),
        (b"task-c-x", b'{"properties":{}}'),
        (b"commit-c", b'{"tasks":"1"}'),
        (b"\xff", b"\xff"),
    ],
)
def test_other_records_change_nothing(
    key: bytes | None, value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    rows = connector_records("c", {"a": "1"}, "PAUSED")
    before, state = state_of(*rows).snapshot(), state_of(*rows)
    assert state.apply(key, value) is None
    assert state.snapshot() == before


def test_odd_names_and_values_survive() -> None:
    name, config = 'a->b "\u00e4" \U0001f600-7', {"k": "\ud800 \u0000 \n"}
    snapshot = state_of(*connector_records(name, config, None)).snapshot()
    assert snapshot.connectors == {name: config}
    assert json.loads(target_state_record(name, "PAUSED")[1] or b"")["state"] == "PAUSED"
