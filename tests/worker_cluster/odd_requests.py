"""Requests that are wrong, with what a worker answers; and names that are right, but odd."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import httpx

JSON = "application/json"
MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class OddRequest:
    """`text` is in the message of the answer; {name} and {config} are a connector that runs."""

    title: str
    method: str
    path: str
    body: str
    status: int
    text: str
    content_type: str = JSON


CREATE = ("POST", "/connectors")
VALIDATE = "/connector-plugins/MirrorSourceConnector/config/validate"
ODD_REQUESTS = (
    OddRequest("half of a JSON object", *CREATE, '{"name":', 500, "Unexpected end-of-input"),
    OddRequest("no JSON", *CREATE, "name=x&config=y", 500, "Unrecognized token 'name'"),
    OddRequest("a list", *CREATE, "[]", 500, "START_ARRAY"),
    OddRequest("nothing", *CREATE, "", 500, "is null"),
    OddRequest("no UTF-8", *CREATE, '{"name":"\xff"}', 500, "Invalid UTF-8"),
    OddRequest("deep", *CREATE, "[" * 100_000, 500, ""),
    OddRequest("another type", *CREATE, "{}", 415, "415", "text/plain"),
    OddRequest("a form", *CREATE, "a=b", 415, "415", "application/x-www-form-urlencoded"),
    OddRequest(
        "unknown class",
        *CREATE,
        '{"name":"x","config":{"connector.class":"FileStreamSource"}}',
        400,
        "Failed to find any class that implements Connector and which name matches FileStream",
    ),
    OddRequest("no class", *CREATE, '{"name":"x","config":{}}', 400, "contains no connector type"),
    OddRequest("no settings", *CREATE, '{"name":"x","config":null}', 500, "is null"),
    OddRequest(
        "settings without a value",
        *CREATE,
        '{"name":"x","config":{"connector.class":"MirrorSourceConnector","topics":null,'
        '"source.cluster.alias":null}}',
        400,
        "values must not be null",
    ),
    OddRequest(
        "settings that are lists",
        *CREATE,
        '{"name":"x","config":{"topics":["a"]}}',
        500,
        "Cannot deserialize value of type `java.lang.String` from Array value",
    ),
    OddRequest("a name twice", *CREATE, '{"name":"{name}","config":{config}}', 409, "exists"),
    OddRequest("ten megabytes of x", *CREATE, "x" * (10 * MEGABYTE), 500, "cannot be read"),
    OddRequest(
        "ten megabytes of settings to validate",
        "PUT",
        VALIDATE,
        '{"connector.class":"MirrorSourceConnector","topics":"%s"}' % ("x" * (10 * MEGABYTE)),
        200,
        "",
    ),
    OddRequest("forty megabytes", *CREATE, "x" * (40 * MEGABYTE), 413, "413"),
    OddRequest("no such path", "GET", "/nothing", "", 404, "404"),
    OddRequest("no such method", "PATCH", "/connectors", "{}", 405, "405"),
    OddRequest("no such connector", "PUT", "/connectors/x/pause", "", 404, "Unknown connector x"),
)

# Those that no URL can name are in lists all the same, as with a genuine worker.
ODD_NAMES = (
    "with space",
    "a->b.Mirror",
    "q?uery&a=b#part",
    "quo\"te's",
    "semi;colon=1",
    "plus+comma,at@colon:",
    "brackets[]{}()<>|^`~",
    "\u00fcml\u00e4ut",
    "\u540d\u524d",
    "party \U0001f389",
    "null",
    "n" * 500,
)
NAMES_WITHOUT_URL = {
    "sla/sh": "sla%2Fsh",
    "two//three": "two%2F%2Fthree",
    "per%cent": "per%25cent",
    "back\\slash": "back%5Cslash",
    "..": "%2E%2E",
    ".": "%2e",
}
REFUSED_NAMES = ("", "   ", "tab\there", "line\nfeed", "be\x07ll", "nu\x00l", "del\x7fete")


async def send_at_once(url: httpx.URL, requests: list[bytes]) -> list[bytes]:
    """The status line of each answer. Plain sockets: pools of clients are slow with so many."""
    return await asyncio.gather(*(_status_line(url, each) for each in requests))


async def _status_line(url: httpx.URL, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(data)
    line = await reader.readline()
    writer.close()
    await writer.wait_closed()
    return line


def plain_request(method: str, path: str, body: bytes = b"") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Content-Type: application/json\r\n\r\n" + body
