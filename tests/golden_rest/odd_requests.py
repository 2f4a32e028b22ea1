"""Bad requests, and what a genuine worker of Connect 4.3.1 without connectors answered to them.

In odd_requests.jsonl `shape` is how the text comes: "json" an error with a Content-Type, "" the
same without one, "page" a page of HTML with the text as its title. `latin1`: the body is not
UTF-8. All names of connectors in it are unknown.
"""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path
from typing import Any, NamedTuple

import httpx

FILE = Path(__file__).with_name("odd_requests.jsonl")
_TYPES = {"json": "application/json", "": "", "page": "text/html;charset=iso-8859-1"}
_TIMEOUT_SECONDS = 30.0


class Answer(NamedTuple):
    """What is compared."""

    status: int
    content_type: str
    text: str


class OddRequest(NamedTuple):
    """A request in bytes, and its answer."""

    name: str
    data: bytes
    answer: Answer


def load_odd_requests() -> list[OddRequest]:
    """In the order in which they were sent."""
    rows = [json.loads(line) for line in FILE.read_text("utf-8").splitlines()]
    return [
        OddRequest(
            f"{number} {row['request']}",
            _request(row),
            Answer(row["status"], _TYPES[row["shape"]], row["text"]),
        )
        for number, row in enumerate(rows)
    ]


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


def send(base_url: str, data: bytes) -> Answer:
    """Send bytes and read until the server closes."""
    head, _, body = exchange_bytes(base_url, data).partition(b"\r\n\r\n")
    content_type = re.search(rb"(?im)^content-type: (.*?)\r?$", head)
    shown = content_type[1].decode() if content_type else ""
    return Answer(int(head.split()[1]), shown, _text(body.decode()))


def exchange_bytes(base_url: str, data: bytes) -> bytes:
    """What comes back for these bytes, until the server closes."""
    url = httpx.URL(base_url)
    with socket.create_connection((url.host, url.port or 80), _TIMEOUT_SECONDS) as sock:
        sock.sendall(data)
        answer = b""
        while chunk := sock.recv(65536):
            answer += chunk
    return answer


def _text(body: str) -> str:
    title = re.search(r"<title>Error 400 (.*)</title>", body)
    return title[1] if title else str(json.loads(body)["message"])
