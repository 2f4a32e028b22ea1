"""Ring buffers of the charts: steps, gaps with reasons, and worst values of coarse steps."""

from __future__ import annotations

from sparkmirror.monitoring.gathering.history import (
    COARSE_KEPT,
    KEPT,
    NO_FIGURES,
    FlowSample,
    History,
)
from tests.monitoring.views.fakes import FLOW, NOW, OPS, Scene, lag

START = 1_760_000_100_000
STEP = 15_000


def sample(seconds: float) -> dict[str, FlowSample]:
    return {FLOW: FlowSample(seconds_behind=seconds, bytes_per_second=seconds * 10)}


def test_an_hour_has_a_point_every_fifteen_seconds_and_no_more_is_kept() -> None:
    history = History(START)
    for at in range(KEPT + 50):
        history.add(START + at * STEP, sample(at))
    found = history.series(FLOW, "1h", START)
    assert len(found.times_ms) == 241
    assert found.values["seconds_behind"][-1] == KEPT + 49
    assert None not in found.values["seconds_behind"]
    assert found.gaps == []
    assert len(history._fine[FLOW]) == KEPT


def test_a_gap_stays_a_gap_with_the_reason() -> None:
    history = History(START)
    for at in range(60):
        if not 20 < at < 30:
            missing = ["worker w: refused"] if at == 20 else []
            history.add(START + at * STEP + at % 3, sample(1.0), missing)
    found = history.series(FLOW, "15m", START)
    values = found.values["seconds_behind"]
    assert values.count(None) == 9 + 1
    (before, gap) = found.gaps[0], found.gaps[-1]
    assert gap[2] == "worker w: refused"
    assert before[2] in ("this worker did not run yet", "worker w: refused")


def test_before_the_start_the_worker_did_not_run() -> None:
    history = History(START)
    for at in range(5):
        history.add(START + at * STEP, sample(1.0))
    found = history.series(FLOW, "1h", START)
    assert [gap[2] for gap in found.gaps] == ["this worker did not run yet"]


def test_a_day_keeps_the_worst_lag_of_each_five_minutes() -> None:
    history = History(START)
    for at in range(80):
        history.add(START + at * STEP, sample(500.0 if at == 33 else 1.0))
    found = history.series(FLOW, "24h", START)
    assert found.step_seconds == 300
    assert len(found.times_ms) == COARSE_KEPT
    assert max(value or 0 for value in found.values["seconds_behind"]) == 500.0
    assert len([value for value in found.values["seconds_behind"] if value is not None]) >= 4


def test_a_flow_without_samples_has_no_data() -> None:
    found = History(START - 7_200_000).series("x->y", "1h", START)
    assert set(found.values["seconds_behind"]) == {None}
    assert found.gaps[0][2] == NO_FIGURES


def test_the_history_of_a_flow_has_events_as_marks() -> None:
    scene = Scene()
    scene.add_source("orders-0")
    scene.lags.lags = [lag()]
    scene.views.sample()
    scene.look_again(15_000)
    scene.views.sample()
    found = scene.views.history(OPS, FLOW, "1h")
    assert found["series"]["seconds_behind"][-2:] == [0.4, 0.4]
    assert found["times_ms"][-1] == NOW + 15_000
    assert scene.views.overview(OPS)["sparks"][FLOW]["seconds_behind"][-1] == 0.4
