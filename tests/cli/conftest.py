"""What tests of several deploy commands share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.rest.connect_api import make_app
from sparkmirror.rest.rest_server import RestServer
from sparkmirror.tools.deploy import deployment
from tests.cli.deploy_shell import CLASSES, Shell, Worker


@pytest.fixture
def shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shell]:
    """The deploy commands, at a worker that holds nothing, with a file for each connector."""
    monkeypatch.setattr(deployment, "_POLL_SECONDS", 0.02)
    worker = Worker()
    with RestServer([("127.0.0.1", 0)]).start(make_app(worker)) as server:
        shell = Shell(worker, f"http://127.0.0.1:{server.ports[0]}", tmp_path, capsys)
        for kind in CLASSES:
            shell.write(kind)
        yield shell
