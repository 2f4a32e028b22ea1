"""Forwards a request that only the leader may handle.

Runs on: worker, in the event loop of the REST server. At most two hops: the first worker adds
`forward=true`, the second `forward=false`, a third does not forward it.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qsl, urlencode, urlsplit

import anyio
import httpx

from sparkmirror.connect.entities import RequestError
from sparkmirror.rest.exception_mapper import (
    BAD_TARGET,
    NO_LEADER,
    NOT_FORWARDED,
    ODD_FORWARD,
    ODD_LEADER,
    OTHER_USERS,
    PLAIN_LEADER,
    TOO_MANY_HOPS,
)
from sparkmirror.rest.signatures import RequestSigner

_CONNECT_TIMEOUT_SECONDS = 5.0
# A new group has no session key until its leader has written one.
_KEY_SECONDS = 5.0
_LOOK_SECONDS = 0.05
_SCHEMES = ("http", "https")

ClientTls = Callable[[], ssl.SSLContext]


@dataclass(frozen=True, slots=True)
class ForwardedRequest:
    """The request as it came: path and query undecoded, header names in lower case."""

    method: str
    raw_path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    is_https: bool = False


@dataclass(frozen=True, slots=True)
class WorkerAddress:
    """Where a worker listens; the host of an IPv6 address has no brackets."""

    scheme: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Forwarded:
    """The leader's response, good or bad."""

    status: int
    body: bytes


async def forward(
    request: ForwardedRequest,
    leader_url: str,
    timeout_seconds: float = 90.0,
    client_tls: ClientTls | None = None,
    signer: RequestSigner | None = None,
) -> Forwarded:
    """Send a request to the leader. Raises RequestError if there is no leader, or no response.

    The leader authenticates the user again, so the password is forwarded. `client_tls` has this
    worker's trust store and certificate. `signer` proves that the request comes from a worker of
    the group.
    """
    query = next_hop(request.query)
    if not leader_url:
        raise RequestError(409, NO_LEADER)
    leader = leader_address(leader_url, request)
    url = target_url(leader, request, query)
    headers = _kept_headers(request)
    if signer is not None:
        await _wait_for_key(signer)
        headers |= signer.headers(request.method, url.raw_path, request.body)
    timeout = httpx.Timeout(timeout_seconds, connect=_CONNECT_TIMEOUT_SECONDS)
    # trust_env=False: a proxy of the environment must not come between workers.
    client = httpx.AsyncClient(timeout=timeout, trust_env=False, verify=_verify(leader, client_tls))
    try:
        # httpx's timeout applies to each read, so a leader could send single bytes for ever.
        with anyio.fail_after(timeout_seconds):
            async with client:
                response = await client.request(
                    request.method, url, headers=headers, content=request.body or None
                )
    except httpx.HTTPError as error:
        reason = str(error) or type(error).__name__
        raise RequestError(500, NOT_FORWARDED % reason) from error
    except TimeoutError as error:
        reason = f"the leader's response did not end within {timeout_seconds:g} s"
        raise RequestError(500, NOT_FORWARDED % reason) from error
    return _read(response)


def leader_address(leader_url: str, request: ForwardedRequest) -> WorkerAddress:
    """The parts of the URL that the leader advertises.

    Only the address is used, so the URL cannot name a user, a path or another protocol. A request
    that arrived encrypted, perhaps with a password, is not forwarded unencrypted.
    """
    parts = urlsplit(leader_url)
    try:
        address = WorkerAddress(parts.scheme, parts.hostname or "", parts.port or 0)
    except ValueError:  # the port is not a number
        raise RequestError(500, ODD_LEADER % leader_url) from None
    host = f"[{address.host}]" if ":" in address.host else address.host
    is_plain = leader_url.rstrip("/").lower() == f"{address.scheme}://{host}:{address.port}"
    if address.scheme not in _SCHEMES or not address.host or not is_plain:
        raise RequestError(500, ODD_LEADER % leader_url)
    if request.is_https and address.scheme != "https":
        raise RequestError(500, PLAIN_LEADER % leader_url)
    return address


def target_url(leader: WorkerAddress, request: ForwardedRequest, query: str) -> httpx.URL:
    """The request's path at the leader: built from parts, so no path can name another host."""
    if not request.raw_path.startswith("/") or request.raw_path.startswith("//"):
        raise RequestError(400, BAD_TARGET)
    raw_path = f"{request.raw_path}?{query}".encode("latin-1")
    return httpx.URL(scheme=leader.scheme, host=leader.host, port=leader.port, raw_path=raw_path)


def _verify(leader: WorkerAddress, client_tls: ClientTls | None) -> ssl.SSLContext | bool:
    """Certificates take long to load, so load them only when needed."""
    is_https = leader.scheme == "https"
    return client_tls() if is_https and client_tls is not None else is_https


def next_hop(query: str) -> str:
    """The query for the next worker; raises RequestError after the second hop."""
    pairs = parse_qsl(query, keep_blank_values=True)
    hops = [value for name, value in pairs if name == "forward"]
    if hops and hops[0].lower() != "true":
        raise RequestError(409, TOO_MANY_HOPS)
    others = [pair for pair in pairs if pair[0] != "forward"]
    return urlencode([*others, ("forward", "false" if hops else "true")])


async def _wait_for_key(signer: RequestSigner) -> None:
    with anyio.move_on_after(_KEY_SECONDS):
        while not signer.has_key:
            await anyio.sleep(_LOOK_SECONDS)


def _kept_headers(request: ForwardedRequest) -> dict[str, str]:
    headers = {"accept": "application/json", "user-agent": "kafka-connect"}
    if "authorization" in request.headers:
        headers["authorization"] = request.headers["authorization"]
    if request.body:
        headers["content-type"] = "application/json"
    return headers


def _read(response: httpx.Response) -> Forwarded:
    if response.status_code >= 400:
        raise _error_of(response)
    if not 200 <= response.status_code < 300:
        raise RequestError(500, ODD_FORWARD % response.status_code)
    return Forwarded(response.status_code, response.content)


def _error_of(response: httpx.Response) -> RequestError:
    if response.status_code == HTTPStatus.UNAUTHORIZED:
        return RequestError(response.status_code, OTHER_USERS)
    try:
        message = response.json()["message"]
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        return RequestError(500, NOT_FORWARDED % f"no error message in the response: {error}")
    return RequestError(response.status_code, str(message))
