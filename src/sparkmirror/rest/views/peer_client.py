"""Asks the other workers of a group for their figures, with requests that are signed.

Runs on: worker, on threads of the REST API. A worker that does not answer in time is missing from
the views, and nothing else.
"""

from __future__ import annotations

import threading
import time
from urllib.parse import quote, urlsplit

import httpx

from sparkmirror.errors import MirrorError
from sparkmirror.monitoring.monitored import MonitoredGroup
from sparkmirror.rest.request_forwarder import ClientTls
from sparkmirror.rest.signatures import RequestSigner

FIGURES = "/sparkmirror/figures"
# Signed, so that a signature is for this and nothing else.
_QUERY = "peer=true"
_CONNECT_SECONDS, _ANSWER_SECONDS = 1.0, 3.0
# Ten thousand partitions take 3 MB.
MOST_BYTES = 64 << 20
NO_REST = "it has no REST API (dedicated.mode.enable.internal.rest=true gives it one)"


class PeerSilent(MirrorError):
    """Another worker did not answer. Operator action: look at its log and at the network."""


class PeerClient:
    """Implements `Peers`; for any thread."""

    def __init__(self, client_tls: ClientTls | None) -> None:
        self._client_tls = client_tls
        self._lock = threading.Lock()
        self._clients: dict[str, httpx.Client] = {}

    def figures_of(self, group: MonitoredGroup, url: str) -> bytes:
        """The figures of the worker at `url`. Raises PeerSilent."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise PeerSilent(NO_REST)
        path = f"{quoted(group.prefix)}{FIGURES}?{_QUERY}"
        cluster = group.cluster
        signer = RequestSigner(cluster.file.inter_worker, cluster.configs.session_keys)
        headers = {"accept": "application/json", "user-agent": "sparkmirror"}
        if signer.has_key:
            headers |= signer.headers("GET", path.encode("latin-1"), b"")
        target = httpx.URL(
            scheme=parts.scheme,
            host=parts.hostname,
            port=parts.port,
            raw_path=path.encode("latin-1"),
        )
        try:
            return self._get(self._client(parts.scheme), target, headers)
        except httpx.HTTPError as error:
            raise PeerSilent(f"no answer: {str(error) or type(error).__name__}") from error

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            client.close()

    def _client(self, scheme: str) -> httpx.Client:
        with self._lock:
            if scheme not in self._clients:
                is_https = scheme == "https"
                tls = self._client_tls
                verify = tls() if is_https and tls is not None else is_https
                timeout = httpx.Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS)
                # trust_env=False: a proxy of the environment must not come between workers.
                self._clients[scheme] = httpx.Client(
                    timeout=timeout, trust_env=False, verify=verify
                )
            return self._clients[scheme]

    def _get(self, client: httpx.Client, target: httpx.URL, headers: dict[str, str]) -> bytes:
        deadline = time.monotonic() + _ANSWER_SECONDS
        with client.stream("GET", target, headers=headers) as response:
            found = bytearray()
            for chunk in response.iter_bytes():
                found += chunk
                if len(found) > MOST_BYTES:
                    raise PeerSilent(f"its answer is longer than {MOST_BYTES >> 20} MB")
                # httpx limits each read only.
                if time.monotonic() > deadline:
                    raise PeerSilent(f"its answer did not end within {_ANSWER_SECONDS:g} s")
        if response.status_code != httpx.codes.OK:
            raise PeerSilent(f"HTTP {response.status_code}{_reason(bytes(found))}")
        return bytes(found)


def quoted(prefix: str) -> str:
    """The prefix of a pair as a path."""
    return "/".join(quote(part, safe="") for part in prefix.split("/"))


def _reason(body: bytes) -> str:
    text = body[:300].decode(errors="replace").strip()
    return f": {text}" if text else ""
