"""A client of the REST API of a Connect worker, ours or a genuine one.

Runs on: any machine. Blocks. Requests that a worker rejects because its group is changing (409) are
retried until the patience ends.
"""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx

from sparkmirror.config.masking import HIDDEN
from sparkmirror.connect.entities import DEGRADED, Json, RequestError
from sparkmirror.errors import ConfigError, MirrorError
from sparkmirror.foreign_json import parse_json

RUNNING = "RUNNING"
_CONNECT_SECONDS = 5.0
# A request sent shortly before the patience ends still gets its response.
_LEAST_SECONDS = 5.0
_RETRY_SECONDS = 0.25
_NOT_FOUND, _CONFLICT, _CREATED, _UNAUTHORIZED = 404, 409, 201, 401
_USER_INFO = re.compile(r"//[^/]*@")


class WorkerUnreachable(MirrorError):
    """No response, or not a Connect worker's. Operator action: the message names the URL."""


class LoginRejected(MirrorError):
    """A worker requires a login, or rejects it. Operator action: use a valid user and password."""


class Access(NamedTuple):
    """A login (`user` is `name:password`), and PEM files: trusted CAs, our own certificate."""

    user: str = ""
    ca: Path | None = None
    certificate: Path | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """The state of a connector itself (`task` is None), or of one of its tasks."""

    connector: str
    task: int | None
    state: str
    worker_id: str
    trace: str = ""

    @property
    def reason(self) -> str:
        """The most useful line of the trace: the first of Java's, the last of Python's."""
        lines = [line for line in self.trace.splitlines() if line.strip()] or [""]
        return lines[-1 if lines[0].startswith("Traceback ") else 0]

    @property
    def is_degraded(self) -> bool:
        """Whether it runs, but does not do all of its work."""
        return self.state == RUNNING and self.trace.startswith(DEGRADED)

    def __str__(self) -> str:
        task = "" if self.task is None else f" task {self.task}"
        return f"{self.connector}{task} is {self.state}"


@dataclass(frozen=True, slots=True)
class DeployedStatus:
    """A connector and its tasks; `response` is the worker's own JSON."""

    connector: Part
    tasks: tuple[Part, ...]
    response: Json = field(compare=False, repr=False)

    @property
    def parts(self) -> tuple[Part, ...]:
        return (self.connector, *self.tasks)

    @property
    def is_running(self) -> bool:
        return all(part.state == RUNNING for part in self.parts)

    @property
    def is_well(self) -> bool:
        """Whether it runs, and does all of its work."""
        return self.is_running and not any(part.is_degraded for part in self.parts)


class ConnectClient:
    """Client of the worker at `url`; percent-encodes names.

    Every method raises WorkerUnreachable, LoginRejected, and RequestError for requests that the
    worker rejects. A login in the URL is used too.
    """

    def __init__(self, url: str, patience_seconds: float, access: Access | None = None) -> None:
        access = access or Access()
        self._base = _parse_url(url)
        self.url = str(self._base.copy_with(userinfo=b"")).rstrip("/")
        self._patience_seconds = patience_seconds
        self.renew_patience()
        # Load certificates, which is slow, only for https. A proxy is not for a worker nearby.
        is_https = self._base.scheme == "https"
        self._http = httpx.Client(
            auth=_basic(access.user) if access.user else None,
            verify=_tls(access) if is_https else False,
            trust_env=False,
        )

    def renew_patience(self) -> None:
        """Restart the deadline for the next step."""
        self._deadline = time.monotonic() + self._patience_seconds

    @property
    def seconds_left(self) -> float:
        return max(self._deadline - time.monotonic(), 0.0)

    def __enter__(self) -> ConnectClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def check(self) -> None:
        """Check that the server is a Connect worker."""
        try:
            root = self._call("GET", "/")
        except RequestError as error:
            raise self._no_worker(f"GET / returns HTTP {error.status}") from error
        if not isinstance(root, dict) or "kafka_cluster_id" not in root:
            raise self._no_worker("its response to GET / is different")

    def validate(self, plugin: str, body: bytes) -> list[tuple[str, str]]:
        """The errors of the settings in `body`, each with its key."""
        infos = self._call("PUT", _path("connector-plugins", plugin, "config/validate"), body)
        with self._shaped():
            values = [row["value"] for row in infos["configs"]]
            return [(str(value["name"]), str(text)) for value in values for text in value["errors"]]

    def status(self, name: str) -> DeployedStatus | None:
        """The status of a connector; None if it does not exist or has no status yet."""
        status = self._find(_path("connectors", name, "status"))
        with self._shaped():
            return None if status is None else _read_status(name, status)

    def config(self, name: str) -> dict[str, str | None] | None:
        """The settings of a connector; None if it does not exist."""
        config = self._find(_path("connectors", name, "config"))
        with self._shaped():
            return None if config is None else {k: _text(v) for k, v in config.items()}

    def configs(self) -> dict[str, dict[str, str | None]]:
        """The settings of every connector."""
        infos = self._call("GET", "/connectors?expand=info")
        with self._shaped():
            return {
                name: {k: _text(v) for k, v in row["info"]["config"].items()}
                for name, row in infos.items()
            }

    def put_config(self, name: str, body: bytes) -> bool:
        """Create a connector, or replace its settings; returns whether it is new."""
        response = self._send("PUT", _path("connectors", name, "config"), body)
        self._read(response)
        return response.status_code == _CREATED

    def delete(self, name: str) -> bool:
        """Delete a connector; returns whether it existed."""
        try:
            self._call("DELETE", _path("connectors", name))
        except RequestError as error:
            if error.status != _NOT_FOUND:
                raise
            return False
        return True

    def get(self, path: str) -> Any:
        """The response to any other GET."""
        return self._call("GET", path)

    def _find(self, path: str) -> Any:
        try:
            return self._call("GET", path)
        except RequestError as error:
            if error.status != _NOT_FOUND:
                raise
            return None

    def _call(self, method: str, path: str, body: bytes | None = None) -> Any:
        return self._read(self._send(method, path, body))

    def _send(self, method: str, path: str, body: bytes | None = None) -> httpx.Response:
        response = self._send_once(method, path, body)
        while response.status_code == _CONFLICT and self.seconds_left:
            time.sleep(min(_RETRY_SECONDS, self.seconds_left))
            response = self._send_once(method, path, body)
        return response

    def _send_once(self, method: str, path: str, body: bytes | None) -> httpx.Response:
        prefix = self._base.raw_path.rstrip(b"/")
        url = self._base.copy_with(raw_path=prefix + path.encode("ascii"))
        headers = {"accept": "application/json"}
        if body is not None:
            headers["content-type"] = "application/json"
        seconds = max(self.seconds_left, _LEAST_SECONDS)
        timeout = httpx.Timeout(seconds, connect=_CONNECT_SECONDS)
        try:
            with self._http.stream(
                method, url, content=body, headers=headers, timeout=timeout
            ) as response:
                return _read_within(response, seconds)
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise WorkerUnreachable(
                f"no response from the Connect worker at {self.url} to {method} {path}: {reason}; "
                f"{self._advice(error)}"
            ) from error

    def _read(self, response: httpx.Response) -> Any:
        if response.status_code == _UNAUTHORIZED:
            raise LoginRejected(
                f"the worker at {self.url} rejects the login; use a user and a password that it "
                "knows"
            )
        if response.is_error:
            raise RequestError(response.status_code, _message(response))
        if not response.content:
            return None
        try:
            return parse_json(response.content)
        except ValueError as error:
            raise self._no_worker(f"its response is not JSON: {error}") from error

    @contextmanager
    def _shaped(self) -> Iterator[None]:
        """Guards the parsing of a response that may come from another program."""
        try:
            yield
        except (KeyError, TypeError, AttributeError) as error:
            raise self._no_worker("its response has an unexpected form") from error

    def _advice(self, error: httpx.HTTPError) -> str:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return "name the file with the certificate of its CA"
        is_connected = isinstance(error, httpx.ReadError | httpx.RemoteProtocolError)
        if self._base.scheme == "https" and is_connected:
            return "it may require a client certificate"
        return "is it running, and is that its URL?"

    def _no_worker(self, why: str) -> WorkerUnreachable:
        return WorkerUnreachable(f"the server at {self.url} is not a Connect worker: {why}")


def _parse_url(url: str) -> httpx.URL:
    shown = _USER_INFO.sub(f"//{HIDDEN}@", url)
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ConfigError("url", shown, str(error), "use one such as http://host:8083") from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ConfigError("url", shown, "no HTTP address", "use one such as http://host:8083")
    return parsed


def _basic(user: str) -> httpx.BasicAuth:
    name, colon, password = user.partition(":")
    if not name or not colon:
        raise ConfigError("user", None, "no login", "write it as NAME:PASSWORD")
    return httpx.BasicAuth(name, password)


def _tls(access: Access) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=access.ca)
        if access.certificate is not None:
            # Without a password OpenSSL would prompt for one on the terminal.
            context.load_cert_chain(access.certificate, password="")
    except OSError as error:
        files = [str(path) for path in (access.ca, access.certificate) if path is not None]
        raise ConfigError(
            "TLS",
            ", ".join(files),
            f"cannot be used: {error.strerror or error}",
            "name files in PEM: certificates to trust; one's certificate with its key, unencrypted",
        ) from error
    return context


def _path(collection: str, name: str, rest: str = "") -> str:
    return f"/{collection}/{quote(name, safe='')}" + (f"/{rest}" if rest else "")


def _read_within(response: httpx.Response, seconds: float) -> httpx.Response:
    """Read the body; httpx limits only each single read, so a slow response would never end."""
    deadline = time.monotonic() + seconds
    body = bytearray()
    for piece in response.iter_bytes():
        body += piece
        if time.monotonic() > deadline:
            raise httpx.ReadTimeout(f"the response did not end within {seconds:g} s")
    return httpx.Response(response.status_code, content=bytes(body), extensions=response.extensions)


def _message(response: httpx.Response) -> str:
    try:
        return str(parse_json(response.content)["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {response.status_code} {response.reason_phrase}"


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _read_status(name: str, status: Json) -> DeployedStatus:
    tasks = tuple(_part(name, task["id"], task) for task in status["tasks"])
    return DeployedStatus(_part(name, None, status["connector"]), tasks, status)


def _part(name: str, task: int | None, state: Mapping[str, Any]) -> Part:
    trace = str(state.get("trace") or "")
    return Part(name, task, str(state["state"]), str(state["worker_id"]), trace)
