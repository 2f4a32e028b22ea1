"""All connectors of a file: connected together, started in order, stopped whatever happened."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from sparkmirror.config.mm2 import MirrorMakerConfig, load_mm2
from sparkmirror.connect import dedicated
from sparkmirror.connect.dedicated import DedicatedMirror
from sparkmirror.connect.heartbeat_connector import HeartbeatConnector
from sparkmirror.connect.source_connector import SourceConnector
from sparkmirror.errors import KafkaError

LINES = {
    "clusters": "a, b, c",
    "a.bootstrap.servers": "127.0.0.1:1",
    "b.bootstrap.servers": "127.0.0.1:2",
    "c.bootstrap.servers": "127.0.0.1:3",
    "a->b.enabled": "true",
}


def make_config(folder: Path, **settings: str) -> MirrorMakerConfig:
    lines = LINES | {key.replace("_", "."): value for key, value in settings.items()}
    path = folder / "mm2.properties"
    path.write_text("\n".join(f"{key} = {value}" for key, value in lines.items()))
    return load_mm2(path)


class FakeConnector:
    """Writes down what it is told."""

    def __init__(self, name: str, calls: list[str], clean: bool = True) -> None:
        self.last_error = ""
        self.tasks: list[Any] = []
        self.name, self._calls, self._clean = name, calls, clean

    def connect(self) -> None:
        self._calls.append(f"connect {self.name}")

    def start(self, *_: object) -> None:
        self._calls.append(f"start {self.name}")

    def stop(self) -> None:
        self._calls.append(f"stop {self.name}")

    def join(self, seconds: float) -> bool:
        assert 0 < seconds <= dedicated.STOP_SECONDS
        self._calls.append(f"join {self.name}")
        return self._clean


class FakeEngine:
    """Spark, without Spark; the control link too."""

    master = "local"
    link_address = ("127.0.0.1", 0)

    def __init__(self, *_: object) -> None:
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True

    def close(self) -> None:
        self.stopped = True


def with_fakes(config: MirrorMakerConfig, calls: list[str], **clean: bool) -> DedicatedMirror:
    mirror = DedicatedMirror(config)
    source = FakeConnector("source", calls, clean.get("source", True))
    mirror.connectors = [cast(SourceConnector, source)]
    mirror.worker_connectors = [FakeConnector("beat", calls, clean.get("beat", True))]
    return mirror


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MirrorMakerConfig:
    monkeypatch.setattr(dedicated, "SparkEngine", FakeEngine)
    monkeypatch.setattr(dedicated, "LinkServer", FakeEngine)
    return make_config(tmp_path)


def test_every_pair_gets_heartbeats(config: MirrorMakerConfig) -> None:
    mirror = DedicatedMirror(config)
    assert [str(connector.flow.name) for connector in mirror.connectors] == ["a->b"]
    beats = [each for each in mirror.worker_connectors if isinstance(each, HeartbeatConnector)]
    assert sorted(beat.name for beat in beats) == [
        f"{pair}|MirrorHeartbeatConnector"
        for pair in ("a->b", "a->c", "b->a", "b->c", "c->a", "c->b")
    ]


def test_heartbeats_that_are_off_have_no_connector(tmp_path: Path) -> None:
    config = make_config(tmp_path, emit_heartbeats_enabled="false")
    assert not any(
        isinstance(each, HeartbeatConnector) for each in DedicatedMirror(config).worker_connectors
    )


def test_every_cluster_that_cannot_be_reached_is_told_once(config: MirrorMakerConfig) -> None:
    mirror = DedicatedMirror(config)
    with pytest.raises(KafkaError) as caught:
        mirror.start()
    lines = str(caught.value).splitlines()
    assert [line.split("(")[0] for line in sorted(lines)] == [
        f"cluster '{alias}' cannot be reached " for alias in "abc"
    ]
    assert mirror.stop()


def test_worker_connectors_start_before_the_source_connectors(config: MirrorMakerConfig) -> None:
    calls: list[str] = []
    mirror = with_fakes(config, calls)
    mirror.start()
    assert sorted(calls[:2]) == ["connect beat", "connect source"]
    assert calls[2:] == ["start beat", "start source"]
    assert mirror.stop()
    assert calls[4:] == ["stop source", "stop beat", "join source", "join beat"]


@pytest.mark.parametrize(
    ("unclean", "clean"),
    [pytest.param("source", False, id="positions"), pytest.param("beat", True, id="heartbeats")],
)
def test_only_positions_count_for_a_clean_end(
    config: MirrorMakerConfig, unclean: str, clean: bool
) -> None:
    calls: list[str] = []
    mirror = with_fakes(config, calls, **{unclean: False})
    mirror.start()
    assert mirror.stop() is clean
    assert "join beat" in calls
