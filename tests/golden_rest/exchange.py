"""Reads the recorded exchanges with a genuine Connect worker."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("exchanges")
BODY, CONTENT_TYPE = "> body: ", "> content-type: "


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer; header names are in lower case."""

    name: str
    method: str
    path: str
    body: str | None
    content_type: str | None
    status: int
    headers: dict[str, str]
    answer: str

    @property
    def number(self) -> int:
        """Exchanges were sent in the order of their numbers."""
        return int(self.name.partition("-")[0])

    @property
    def request_json(self) -> Any:
        return json.loads(self.body or "null")

    @property
    def json(self) -> Any:
        """The answer, which must be JSON."""
        return json.loads(self.answer)


def load_exchange(number: int) -> Exchange:
    """The exchange with this number."""
    (path,) = FOLDER.glob(f"{number:02}-*.txt")
    return parse_exchange(path.stem, path.read_text("utf-8"))


def load_exchanges() -> list[Exchange]:
    """All of them, in the order in which they were sent."""
    found = (parse_exchange(path.stem, path.read_text("utf-8")) for path in FOLDER.glob("*.txt"))
    return sorted(found, key=lambda exchange: exchange.number)


def parse_exchange(name: str, text: str) -> Exchange:
    """An exchange from the text of its file."""
    head, _, answer = text.partition("\n\n")
    lines = head.splitlines()
    request = [line for line in lines if line.startswith("> ")]
    status, *headers = [line for line in lines if not line.startswith("> ")]
    _, method, path = request[0].split(" ", 2)
    return Exchange(
        name=name,
        method=method,
        path=path,
        body=_find(request, BODY),
        content_type=_find(request, CONTENT_TYPE),
        status=int(status.split()[1]),
        headers={key.lower(): value for key, _, value in (h.partition(": ") for h in headers)},
        answer=answer.rstrip("\n"),
    )


def _find(lines: list[str], prefix: str) -> str | None:
    return next((line.removeprefix(prefix) for line in lines if line.startswith(prefix)), None)
