"""A worker whose views say what a test gives them, and the commands that ask it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from sparkmirror.cli.main import main
from sparkmirror.monitoring.clusters.groups_look import GroupPosition, GroupSeen, GroupsSeen
from sparkmirror.monitoring.clusters.known import Known
from sparkmirror.monitoring.clusters.topics_look import TopicsSeen
from sparkmirror.monitoring.views import views as views_module
from sparkmirror.rest.connect_api import make_app
from sparkmirror.rest.request import RestOptions
from sparkmirror.rest.rest_server import RestServer
from sparkmirror.types import TopicPartition
from tests.monitoring.views.fakes import NOW, Scene
from tests.rest.fake_herder import FakeHerder


class Commands:
    """Runs commands with the worker's URL; `out` and `err` are those of the last one."""

    def __init__(self, scene: Scene, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.scene = scene
        self.url = url
        self.out = self.err = ""
        self._capsys = capsys

    def __call__(self, *words: str) -> int:
        """The exit code."""
        with pytest.raises(SystemExit) as ended:
            main([*words, "--url", self.url])
        self.out, self.err = self._capsys.readouterr()
        return int(ended.value.code or 0)

    def json(self, *words: str) -> dict[str, Any]:
        assert self(*words, "--json") == 0, self.err
        found: dict[str, Any] = json.loads(self.out)
        return found


def know_all(scene: Scene) -> None:
    """Both clusters have answered, and one group is synced."""
    watch = scene.watch
    watch.topics = Known(
        TopicsSeen({"orders": 1, "other": 1}, {"a.orders": 1}, {"orders": "a.orders"}, {}), NOW, ""
    )
    place = GroupPosition(
        TopicPartition("orders", 0), TopicPartition("a.orders", 0), 9, 9, True, 9, 9, 0
    )
    watch.groups = Known(GroupsSeen([GroupSeen("g", [place], 0, 0, NOW)], is_synced=True), NOW, "")
    watch.heartbeat = Known(NOW - 500, NOW, "")


@pytest.fixture
def commands(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Commands]:
    monkeypatch.setattr(views_module, "READINGS_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(views_module, "GROUPS_WAIT_SECONDS", 0.0)
    scene = Scene()
    app = make_app(FakeHerder(), RestOptions(views=scene.views))
    with RestServer([("127.0.0.1", 0)]).start(app) as server:
        yield Commands(scene, f"http://127.0.0.1:{server.ports[0]}", capsys)
