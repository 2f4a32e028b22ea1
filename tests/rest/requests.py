"""Requests that tests send: the path goes out exactly as it is written."""

from __future__ import annotations

import json

import httpx

NAME = "a->b.h"
HEARTBEAT = {
    "connector.class": "MirrorHeartbeatConnector",
    "source.cluster.alias": "a",
    "target.cluster.alias": "b",
}


def request(
    base_url: str | httpx.URL,
    method: str,
    raw_path: str,
    body: object = None,
    *,
    content_type: str | None = "application/json",
    headers: dict[str, str] | None = None,
) -> httpx.Response:
    """`body`: text and bytes are sent unchanged, everything else as JSON."""
    url = httpx.URL(base_url, raw_path=raw_path.encode("latin-1"))
    sent = dict(headers or {})
    if body is not None and content_type is not None:
        sent["content-type"] = content_type
    if body is not None and not isinstance(body, str | bytes):
        body = json.dumps(body)
    # Without certificates, which take long to load.
    with httpx.Client(verify=False, timeout=20, trust_env=False) as client:
        return client.request(method, url, headers=sent, content=body)
