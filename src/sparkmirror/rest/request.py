"""One request as a handler sees it, and its response.

Runs on: worker. Pure.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from sparkmirror.config.worker.rest_keys import HeaderRule
from sparkmirror.connect.entities import Herder, RequestError
from sparkmirror.monitoring.views.views import Views
from sparkmirror.rest.exception_mapper import NOT_FOUND
from sparkmirror.rest.request_forwarder import ClientTls
from sparkmirror.rest.security.users import User, Users
from sparkmirror.rest.signatures import RequestSigner
from sparkmirror.rest.views.event_stream import EventStreams
from sparkmirror.rest.views.static_files import StaticFiles

# Characters that a path may contain unescaped (RFC 3986), besides letters, digits and -._~.
# A semicolon is allowed too, but would end the name.
_PATH_CHARACTERS = "/!$&'()*+,=:@"
_INT_LIMIT = 2**31
_INT_DIGITS = 10


@dataclass(frozen=True, slots=True)
class RestOptions:
    """The worker's settings for the REST API.

    `admin`: serve /admin; `main`: serve everything else. `allow_origin` is a
    comma-separated list of patterns, empty for no CORS. Times are in seconds. `users`: who may log
    in; None: no login needed. `client_tls` is for https requests to other workers; `signer` signs
    those requests and checks incoming ones; None: there are no other workers. `prefix`: what all
    paths begin with. `metrics`: what /metrics returns; None: there is no such path. `views`,
    `streams`, `files`: what /sparkmirror and /ui show; None: the same. `is_open`: everyone who can
    connect may do everything.
    """

    main: bool = True
    admin: bool = True
    topic_tracking: bool = True
    topic_tracking_reset: bool = True
    allow_origin: str = ""
    allow_methods: str = ""
    response_headers: tuple[HeaderRule, ...] = ()
    request_timeout_seconds: float = 90.0
    health_timeout_seconds: float = 10.0
    max_body_bytes: int = 32 * 1024 * 1024
    max_requests_per_second: int = 0
    users: Users | None = None
    client_tls: ClientTls | None = None
    signer: RequestSigner | None = None
    prefix: str = ""
    metrics: Callable[[], RestResponse] | None = None
    views: Views | None = None
    streams: EventStreams | None = None
    files: StaticFiles | None = None
    is_open: bool = True


@dataclass(frozen=True, slots=True)
class RestResponse:
    """Status and content: `body` is sent as JSON, `raw` unchanged, `stream` as it comes."""

    status: int = 200
    body: object = None
    raw: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: AsyncIterator[bytes] | None = None


@dataclass(frozen=True, slots=True)
class RestRequest:
    """A request with a known path; `base_url` is this worker's URL as the client spelled it.

    `is_signed`: it has the signature header of requests between genuine workers. `user`: None
    where nobody has to log in.
    """

    herder: Herder
    options: RestOptions
    params: Mapping[str, str]
    query: Mapping[str, Sequence[str]]
    body: bytes = b""
    base_url: str = ""
    is_signed: bool = False
    user: User | None = None

    @property
    def connector(self) -> str:
        return self.params["connector"]

    @property
    def task(self) -> int:
        """The task's number. Raises RequestError (404) if it is not a Java int."""
        return parse_java_int(self.params["task"])

    def flag(self, name: str, default: bool = False) -> bool:
        """A boolean as in Java: 'true' in any case is true, everything else is false."""
        values = self.query.get(name)
        return values[0].lower() == "true" if values else default

    def text(self, name: str) -> str | None:
        values = self.query.get(name)
        return values[0] if values else None

    def location(self, connector: str) -> Mapping[str, str]:
        """The Location header of a new connector."""
        return {"Location": f"{self.base_url}/connectors/{quote(connector, _PATH_CHARACTERS)}"}


ResourceMethod = Callable[[RestRequest], RestResponse]


def parse_java_int(text: str) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    # Without leading zeros, because Python rejects numbers of thousands of digits.
    number = digits.lstrip("0") or "0"
    if not (digits.isascii() and digits.isdigit()) or len(number) > _INT_DIGITS:
        raise RequestError(404, NOT_FOUND)
    value = -int(number) if text.startswith("-") else int(number)
    if not -_INT_LIMIT <= value < _INT_LIMIT:
        raise RequestError(404, NOT_FOUND)
    return value
