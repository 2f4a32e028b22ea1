"""The client of a Connect worker, and workers with unexpected responses."""

from __future__ import annotations

import pytest

from sparkmirror.tools.deploy import rest_client as module
from sparkmirror.tools.deploy.rest_client import ConnectClient, WorkerUnreachable
from tests.dripping import dripping


def test_worker_that_sends_a_byte_now_and_then_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_LEAST_SECONDS", 0.3)
    start = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"
    with (
        dripping(start=start) as url,
        ConnectClient(url, 0.0) as client,
        pytest.raises(WorkerUnreachable, match=r"did not end within 0\.3 s"),
    ):
        client.check()
