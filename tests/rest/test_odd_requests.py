"""Bad requests, and what a genuine worker of Connect 4.3.1 answered to each of them.

odd_requests.jsonl was recorded from a worker without connectors (`x` and all other names in it
are unknown). `shape` is how the text comes: "json" an error with a Content-Type, "" the same
without one, "page" a page of HTML with the text as its title. `latin1`: the body is not UTF-8.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkmirror.rest.app import make_app
from sparkmirror.rest.server import RestServer
from tests.rest.fake_herder import FakeHerder
from tests.rest.requests import raw_request

_FILE = Path(__file__).with_name("odd_requests.jsonl")
_ROWS: list[dict[str, Any]] = [json.loads(line) for line in _FILE.read_text().splitlines()]


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    with RestServer([("127.0.0.1", 0)]).start(make_app(FakeHerder())) as server:
        yield f"http://127.0.0.1:{server.ports[0]}"


@pytest.mark.parametrize(
    "row", _ROWS, ids=[f"{at}-{row['request']}" for at, row in enumerate(_ROWS)]
)
def test_odd_request_is_answered_as_by_a_genuine_worker(base_url: str, row: dict[str, Any]) -> None:
    head, _, body = raw_request(base_url, _request(row)).partition(b"\r\n\r\n")
    status = int(head.split()[1])
    content_type = re.search(rb"(?im)^content-type: (.*?)\r?$", head)
    shown = content_type[1].decode() if content_type else ""
    assert (status, shown, _text(body.decode())) == (
        row["status"],
        _TYPES[row["shape"]],
        row["text"],
    )


_TYPES = {"json": "application/json", "": "", "page": "text/html;charset=iso-8859-1"}


def _text(body: str) -> str:
    title = re.search(r"<title>Error 400 (.*)</title>", body)
    if title:
        return title[1]
    answer: dict[str, Any] = json.loads(body)
    return str(answer["message"])


def _request(row: dict[str, Any]) -> bytes:
    lines = [f"{row['request']} HTTP/1.1", "Host: connect-worker:8083", "Connection: close"]
    lines += row.get("headers", [])
    body = row.get("body")
    data = (body or "").encode("latin-1" if row.get("latin1") else "utf-8")
    if body is not None:
        content_type = row.get("type", "application/json")
        lines += [] if content_type is None else [f"Content-Type: {content_type}"]
        lines.append(f"Content-Length: {len(data)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data
