"""Sends the recorded exchanges to a worker and says how its answers differ from a genuine one's.

What may differ is masked: ids of clusters, addresses, ports, times, the order of keys and lists,
texts of documentation, names of loggers, who serves (the Server header, how long and in which
encoding the body is sent).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import httpx

from tests.clusters import wait_for
from tests.golden_rest.exchange import Exchange

# Headers that say something about the server, not about the answer.
_IGNORED_HEADERS = ("server", "date", "content-length", "transfer-encoding", "connection", "vary")
_SOURCE = "a->b.MirrorSourceConnector"
_MIRRORS = (_SOURCE, "a->b.MirrorCheckpointConnector", "a->b.MirrorHeartbeatConnector")
_TIMEOUT_SECONDS = 100.0
# The status right after the creation: a quick worker has one already.
_RACE = 22
_PAUSE_SECONDS = 0.1
# A worker looks at its tasks twice a second: one that is restarting has said so by then.
_STEADY_SECONDS = 2.0
# Lists of loggers are those of a JVM; only that there are some can be compared.
_LOGGER_LISTS = (91, 97)


@dataclass(frozen=True, slots=True)
class Masks:
    """What stands in the recordings, and what it is here: `{"source-kafka:9092": "..."}`.

    `worker` is the worker's id in statuses (host:port). `skip_documentation`: texts are our own.
    """

    addresses: Mapping[str, str] = field(default_factory=dict)
    worker: str = "connect-worker:8083"
    wait_seconds: float = 60.0
    skip_documentation: bool = True

    def here(self, text: str) -> str:
        """A recorded request as it is sent here."""
        for recorded, actual in self.addresses.items():
            text = text.replace(recorded, actual)
        return text

    def recorded(self, text: str) -> str:
        """An answer from here, in the words of the recordings."""
        for recorded, actual in self.addresses.items():
            text = text.replace(actual, recorded)
        return text.replace(self.worker, "connect-worker:8083")


@dataclass(frozen=True, slots=True)
class Difference:
    """What one exchange has otherwise: `what` is status, a header's name, or body."""

    number: int
    name: str
    what: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.name}: {self.what}: expected {self.expected}, found {self.found}"


def replay(
    base_url: str,
    exchanges: Sequence[Exchange],
    masks: Masks,
    unsettled: Callable[[], object],
) -> list[Difference]:
    """Send each once, waiting between them as README.md says; returns every difference.

    `unsettled` tells, without asking the worker, what its connectors have done and it has not yet
    stored; it is false when that is nothing.
    """
    found: list[Difference] = []
    with httpx.Client(base_url=base_url, timeout=_TIMEOUT_SECONDS, trust_env=False) as client:
        for exchange in exchanges:
            _wait_before(exchange, client, masks, unsettled)
            found += compare(exchange, _send(client, exchange, masks), masks, base_url)
    return found


def _send(client: httpx.Client, exchange: Exchange, masks: Masks) -> httpx.Response:
    headers = {"content-type": exchange.content_type} if exchange.content_type else {}
    body = None if exchange.body is None else masks.here(exchange.body)
    # A URL of httpx would be encoded again.
    url = httpx.URL(client.base_url, raw_path=exchange.path.encode())
    return client.request(exchange.method, url, content=body, headers=headers)


def _wait_before(
    exchange: Exchange, client: httpx.Client, masks: Masks, unsettled: Callable[[], object]
) -> None:
    waits: dict[int, Callable[[], bool]] = {
        38: lambda: all(_runs(client, name) for name in _MIRRORS) and not unsettled(),
        60: lambda: _states(client, _SOURCE) == {"PAUSED"},
        63: lambda: _runs(client, _SOURCE),
        64: lambda: _keeps_running(client, _SOURCE),
        67: lambda: _runs(client, _SOURCE),
        73: lambda: _states(client, _SOURCE) == {"STOPPED"},
    }
    condition = waits.get(exchange.number, lambda: True)
    wait_for(
        condition,
        within=masks.wait_seconds,
        describe=lambda: (
            f"the state before {exchange.name}: {_states(client, _SOURCE)}, {unsettled()}"
        ),
    )


def _states(client: httpx.Client, connector: str) -> set[str]:
    """States of the connector and its tasks."""
    everything = client.get("/connectors", params={"expand": "status"}).json()
    status = everything.get(connector, {}).get("status")
    if status is None:
        return set()
    return {status["connector"]["state"], *(task["state"] for task in status["tasks"])}


def _runs(client: httpx.Client, connector: str) -> bool:
    everything = client.get("/connectors", params={"expand": "info"}).json()
    tasks = everything.get(connector, {}).get("info", {}).get("tasks")
    return bool(tasks) and _states(client, connector) == {"RUNNING"}


def _keeps_running(client: httpx.Client, connector: str) -> bool:
    """Whether it runs at every look for a while."""
    until = time.monotonic() + _STEADY_SECONDS
    while _runs(client, connector):
        if time.monotonic() > until:
            return True
        time.sleep(_PAUSE_SECONDS)
    return False


def compare(
    exchange: Exchange, response: httpx.Response, masks: Masks, base_url: str
) -> list[Difference]:
    """Status, headers and body of one answer."""
    if exchange.number == _RACE and response.status_code == HTTPStatus.OK:
        return []
    pairs = {
        "status": (exchange.status, response.status_code),
        **_header_pairs(exchange, response, base_url),
        "body": (
            _masked(exchange, exchange.answer, masks),
            _masked(exchange, masks.recorded(response.text), masks),
        ),
    }
    return [
        Difference(exchange.number, exchange.name, what, str(expected), str(found))
        for what, (expected, found) in pairs.items()
        if expected != found
    ]


def _header_pairs(
    exchange: Exchange, response: httpx.Response, base_url: str
) -> dict[str, tuple[str | None, str | None]]:
    found = dict(response.headers)
    if "location" in found:
        found["location"] = found["location"].replace(base_url, "http://connect-worker:8083")
    names = {*exchange.headers, *found} - set(_IGNORED_HEADERS)
    return {name: (exchange.headers.get(name), found.get(name)) for name in sorted(names)}


def _masked(exchange: Exchange, body: str, masks: Masks) -> str:
    try:
        value = json.loads(body)
    except json.JSONDecodeError:
        return _without_server(body)
    if exchange.number in _LOGGER_LISTS:
        return f"{len(value) > 0} {value == sorted(value)}"
    return json.dumps(_mask(value, masks), sort_keys=True)


def _without_server(page: str) -> str:
    lines = (line for line in page.strip().splitlines() if "Powered by" not in line)
    return "\n".join(line.strip() for line in lines if line.strip())


def _mask(value: Any, masks: Masks) -> Any:
    """Without what may differ; lists are sorted."""
    if isinstance(value, dict):
        return {
            key: _mask_member(key, inner, masks)
            for key, inner in value.items()
            if key != "documentation" or not masks.skip_documentation
        }
    if isinstance(value, list):
        masked = [_mask(inner, masks) for inner in value]
        return sorted(masked, key=lambda inner: json.dumps(inner, sort_keys=True))
    return value


def _mask_member(key: str, value: Any, masks: Masks) -> Any:
    if key in ("kafka_cluster_id", "commit") and isinstance(value, str):
        return f"<{key}>"
    if key == "last_modified" and isinstance(value, int):
        return "<time>"
    return _mask(value, masks)
