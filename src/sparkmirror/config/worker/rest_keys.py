"""The keys of a worker's REST API: its listeners, its advertised address, headers to add.

Mirrors: org.apache.kafka.connect.runtime.rest.RestServerConfig (4.3). `rest.port` and
`rest.host.name` are the spelling of Connect before 3.0.
"""

from __future__ import annotations

import csv
import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sparkmirror.config.config_def import BadValue, Definition, Key, Type, fill
from sparkmirror.config.findings import Settings
from sparkmirror.config.patterns.java_regex import compile_patterns
from sparkmirror.config.worker.rest_security import (
    ADMIN_HTTPS_PREFIX,
    BASIC_AUTH,
    EXTENSIONS,
    HTTPS_PREFIX,
    REQUIRED,
    REST_SECURITY_KEYS,
    USERS_FILE,
    RestTls,
    TlsUse,
    rest_tls,
)

URL = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]{1,9})", re.ASCII)
DEFAULT_PORT = 8083
HOST = re.compile(r"[0-9a-zA-Z\-._]+|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*(%[0-9a-zA-Z\-._]+)?", re.ASCII)
SCHEMES = ("http", "https")
HEADER_ACTIONS = ("set", "add", "setDate", "addDate")
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
HEADER_VALUE = re.compile(r"[\t\x20-\x7e\xa0-\xff]*")
MILLISECONDS = re.compile(r"-?[0-9]{1,13}")
ADVERTISED_HOST = "rest.advertised.host.name"
LISTENERS, ADMIN_LISTENERS = "listeners", "admin.listeners"
OLD_PORT, OLD_HOST = "rest.port", "rest.host.name"


class Listener(NamedTuple):
    """An address to listen on; without a host: all interfaces; port 0: any free port."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.scheme}://{self.address}"

    @property
    def address(self) -> str:
        """`host:port`, as in the id of a worker."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def is_https(self) -> bool:
        return self.scheme == "https"

    @property
    def is_local(self) -> bool:
        """Whether only programs on this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


class HeaderRule(NamedTuple):
    """A header for every response; `action` is one of HEADER_ACTIONS; dates are in ms."""

    action: str
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class RestConfig:
    """The REST API of a worker.

    `admin_listeners` serve only /admin; None: the listeners serve it; empty: it is disabled.
    """

    listeners: tuple[Listener, ...]
    admin_listeners: tuple[Listener, ...] | None = None
    advertised_host: str | None = None
    advertised_port: int | None = None
    advertised_listener: str | None = None
    allow_origin: str = ""
    allow_methods: str = ""
    response_headers: tuple[HeaderRule, ...] = ()
    tls: RestTls = field(default_factory=RestTls)
    admin_tls: RestTls = field(default_factory=RestTls)
    basic_auth: bool = False
    users_file: str | None = None
    read_only_users: tuple[str, ...] = ()
    max_request_bytes: int = 32 * 1024 * 1024
    max_requests_per_second: int = 0

    @property
    def public(self) -> Listener:
        """The advertised listener: of the configured scheme, else an unencrypted one."""
        wanted = (self.advertised_listener, *SCHEMES)
        order = [each for scheme in wanted for each in self.listeners if each.scheme == scheme]
        return order[0]

    @property
    def open_listeners(self) -> tuple[Listener, ...]:
        """Listeners without authentication that other machines can reach."""
        pairs = [(each, self.tls) for each in self.listeners]
        pairs += [(each, self.admin_tls) for each in self.admin_listeners or ()]
        return tuple(
            each
            for each, tls in pairs
            if not (self.basic_auth or each.is_local or (each.is_https and _needs_certificate(tls)))
        )

    @property
    def is_open(self) -> bool:
        """Whether anyone who can connect to one of the listeners may use it."""
        return any(
            not (self.basic_auth or (each.is_https and _needs_certificate(self.tls)))
            for each in self.listeners
        )

    def advertised(self, own_host: str, bound_port: int = 0) -> Listener:
        """The address that other workers and clients use.

        `own_host` is used where no host is set, `bound_port` where the `public` listener has
        port 0.
        """
        first = self.public
        return Listener(
            self.advertised_listener or first.scheme,
            self.advertised_host or first.host or own_host,
            self.advertised_port or first.port or bound_port,
        )


def _needs_certificate(tls: RestTls) -> bool:
    return tls.client_auth == REQUIRED


def parse_listeners(items: tuple[str, ...]) -> tuple[Listener, ...]:
    """Parse each `http://host:port`. Raises BadValue."""
    return tuple(_listener(item) for item in items)


def _listener(text: str) -> Listener:
    found = URL.fullmatch(text)
    if found is None:
        raise BadValue(f"'{text}' is not a listener", "use http://host:port or https://host:port")
    scheme, host, port = found[1].lower(), found[2], int(found[3])
    if scheme not in SCHEMES or port > 65535:
        raise BadValue(f"'{text}' is not a listener", "use http or https and a port up to 65535")
    return Listener(scheme, host, port)


def _headers(text: str) -> tuple[HeaderRule, ...]:
    """Parse `[action] [name]:[value], ...`; a rule that contains a comma is quoted."""
    if not text.strip():
        return ()
    try:
        rules = next(csv.reader([text], skipinitialspace=True))
    except csv.Error as error:
        raise BadValue(f"not a list of rules: {error}", "write them on one line") from None
    return tuple(_header(rule.strip()) for rule in rules)


def _header(rule: str) -> HeaderRule:
    action, _, header = rule.partition(" ")
    known = {name.lower(): name for name in HEADER_ACTIONS}.get(action.lower())
    name, colon, value = header.strip().partition(":")
    if known is None or not colon or not name.strip() or " " in name.strip() or ":" in value:
        raise BadValue(
            f"'{rule}' is not a rule for a header",
            f"use '<action> <header>: <value>' with one of {', '.join(HEADER_ACTIONS)}",
        )
    if not HEADER_NAME.fullmatch(name.strip()) or not HEADER_VALUE.fullmatch(value.strip()):
        raise BadValue(f"'{rule}' has characters that headers cannot contain", "use ASCII")
    if known.endswith("Date") and not MILLISECONDS.fullmatch(value.strip()):
        raise BadValue(f"'{rule}' has no time", "give it in milliseconds from now")
    return HeaderRule(known, name.strip(), value.strip())


def _host(text: str) -> str:
    """A name or an address, without the brackets of IPv6: it becomes part of this worker's URL.

    Values from compose files may have quotes around them, which are dropped.
    """
    text = text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
    host = text.removeprefix("[").removesuffix("]") if ":" in text else text
    if host and not HOST.fullmatch(host):
        raise BadValue("is not the name or address of a host", "write it without port and path")
    return host


def _origins(text: str) -> str:
    """Check the comma-separated patterns; * is allowed."""
    for part in map(str.strip, text.split(",")):
        try:
            compile_patterns(["" if part == "*" else part])
        except BadValue as bad:
            raise BadValue(
                f"'{part}' is not a pattern: {bad.reason}", "write only * for all"
            ) from None
    return text


REST_KEYS = Definition(
    Key(
        name=LISTENERS,
        type=Type.LIST,
        default=(Listener("http", "", DEFAULT_PORT),),
        shown_default=f"http://:{DEFAULT_PORT}",
        non_empty=True,
        convert=parse_listeners,
        doc="Addresses of the REST API, as `http://host:port` or `https://host:port`; without a "
        "host: all interfaces.",
    ),
    Key(
        name=ADMIN_LISTENERS,
        type=Type.LIST,
        default=None,
        convert=parse_listeners,
        doc="Separate addresses of `/admin`; empty: `/admin` is disabled.",
    ),
    Key(
        name=ADVERTISED_HOST,
        type=Type.STRING,
        default=None,
        attribute="advertised_host",
        convert=_host,
        doc="Host name that the other workers use to reach this one.",
    ),
    Key(
        name="rest.advertised.port",
        type=Type.INT,
        default=None,
        at_least=1,
        at_most=65535,
        attribute="advertised_port",
        doc="Port that they use.",
    ),
    Key(
        name="rest.advertised.listener",
        type=Type.STRING,
        default=None,
        one_of=SCHEMES,
        ignore_case=True,
        convert=str.lower,
        attribute="advertised_listener",
        doc="Protocol that they use; unset: http if there is an http listener, else https.",
    ),
    Key(
        name="access.control.allow.origin",
        type=Type.STRING,
        default="",
        attribute="allow_origin",
        convert=_origins,
        doc="Origins whose pages may use the REST API from a browser; `*`: all.",
    ),
    Key(
        name="access.control.allow.methods",
        type=Type.STRING,
        default="",
        attribute="allow_methods",
        doc="Methods that they may use; empty: GET, POST and HEAD.",
    ),
    Key(
        name="response.http.headers.config",
        type=Type.STRING,
        default=(),
        attribute="response_headers",
        convert=_headers,
        doc="Headers to add to every response: `set X-Frame-Options: DENY, add Cache-Control: "
        "no-store`.",
    ),
    Key(
        name=OLD_HOST,
        type=Type.STRING,
        default=None,
        doc="Old spelling of the host in `listeners`, which takes precedence.",
    ),
    Key(
        name=OLD_PORT,
        type=Type.INT,
        default=None,
        at_least=0,
        at_most=65535,
        doc="Old spelling of the port in `listeners`, which takes precedence.",
    ),
    *REST_SECURITY_KEYS,
)


def rest_config(
    values: Mapping[str, Any], settings: Settings, further: Sequence[Listener] = ()
) -> RestConfig:
    """The REST API in the parsed REST_KEYS; `further` listeners use its TLS settings."""
    listeners = values[LISTENERS]
    if OLD_PORT in settings.values or OLD_HOST in settings.values:
        listeners = _old_listeners(values, settings)
    admin = values[ADMIN_LISTENERS] or ()
    return fill(
        RestConfig,
        REST_KEYS,
        dict(values) | {LISTENERS: listeners},
        tls=rest_tls(settings, TlsUse(LISTENERS, HTTPS_PREFIX, _any_https((*listeners, *further)))),
        admin_tls=rest_tls(
            settings, TlsUse(ADMIN_LISTENERS, ADMIN_HTTPS_PREFIX, _any_https(admin))
        ),
        basic_auth=BASIC_AUTH in values[EXTENSIONS] or values[USERS_FILE] is not None,
    )


def _any_https(listeners: Iterable[Listener]) -> bool:
    return any(listener.is_https for listener in listeners)


def _old_listeners(values: Mapping[str, Any], settings: Settings) -> tuple[Listener, ...]:
    old = OLD_PORT if OLD_PORT in settings.values else OLD_HOST
    if LISTENERS in settings.values:
        settings.findings.warn_key(old, f"has no effect: {LISTENERS} is set")
        return tuple(values[LISTENERS])
    port = DEFAULT_PORT if values[OLD_PORT] is None else values[OLD_PORT]
    listener = Listener("http", values[OLD_HOST] or "", port)
    new = settings.findings.origin(LISTENERS).key
    settings.findings.warn_key(old, f"is an old spelling; write {new}={listener}")
    return (listener,)
