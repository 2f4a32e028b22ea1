"""The keys for users and TLS of a worker's REST API, and checks of them together.

Mirrors: org.apache.kafka.connect.runtime.rest.util.SSLUtils and Connect's extension for basic
authentication (4.3). TLS keys are those of the brokers; under `listeners.https.` or
`admin.listeners.https.` they apply to the REST API only, and then keys without a prefix do not
apply to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sparkmirror.config.clients import with_prefix
from sparkmirror.config.config_def import BadValue, Definition, Key, Type
from sparkmirror.config.findings import Settings
from sparkmirror.config.keys.security_keys import SECURITY_KEYS

EXTENSIONS = "rest.extension.classes"
BASIC_AUTH = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
USERS_FILE = "rest.basic.auth.users.file"
READ_ONLY_USERS = "rest.read.only.users"
CLIENT_AUTH = "ssl.client.auth"
HTTPS_PREFIX, ADMIN_HTTPS_PREFIX = "listeners.https.", "admin.listeners.https."
KEY_STORES = ("ssl.keystore.location", "ssl.keystore.key")
TRUST_STORES = ("ssl.truststore.location", "ssl.truststore.certificates")
REQUIRED, REQUESTED, NONE = "required", "requested", "none"


def _extensions(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if name != BASIC_AUTH:
            raise BadValue(
                f"'{name}' is Java and cannot run here; without it the REST API may be unprotected",
                f"use {BASIC_AUTH}, or remove it",
            )
    return names


_CLIENT_AUTH_KEY = Key(
    name=CLIENT_AUTH,
    type=Type.STRING,
    default=NONE,
    one_of=(REQUIRED, REQUESTED, NONE),
    doc="Whether clients of an https listener must present a certificate (`required`), may "
    "(`requested`), or need not (`none`).",
)
REST_SECURITY_KEYS = Definition(
    Key(
        name=EXTENSIONS,
        type=Type.LIST,
        default=(),
        convert=_extensions,
        doc=f"`{BASIC_AUTH}` requires a user and a password; others are rejected.",
    ),
    _CLIENT_AUTH_KEY,
    Key(
        name=USERS_FILE,
        type=Type.STRING,
        default=None,
        non_empty=True,
        attribute="users_file",
        doc="File of users, `name: password` per line, plain or hashed by `sparkmirror password`. "
        "Requires a user and a password. Not a key of Connect.",
    ),
    Key(
        name=READ_ONLY_USERS,
        type=Type.LIST,
        default=(),
        attribute="read_only_users",
        doc="Users that may read everything and change nothing; `*`: all. Not a key of Connect.",
    ),
    Key(
        name="rest.max.request.bytes",
        type=Type.INT,
        default=32 * 1024 * 1024,
        at_least=1024,
        attribute="max_request_bytes",
        doc="Largest request body, in bytes. Not a key of Connect.",
    ),
    Key(
        name="rest.max.requests.per.second",
        type=Type.INT,
        default=0,
        at_least=0,
        attribute="max_requests_per_second",
        doc="Most requests per second from one address; 0: no limit. Not a key of Connect.",
    ),
)
TLS_KEYS = Definition(
    *(key for key in SECURITY_KEYS if key.name.startswith("ssl.")), _CLIENT_AUTH_KEY
)


@dataclass(frozen=True, slots=True)
class RestTls:
    """TLS of some listeners. `security` has only what was set, passwords as Secret.

    `prefix` is the prefix of these keys in the worker's file.
    """

    security: Mapping[str, Any] = field(default_factory=dict)
    client_auth: str = NONE
    prefix: str = ""


class TlsUse(NamedTuple):
    """Listeners as in the worker's file, and the prefix of their TLS keys."""

    key: str
    prefix: str
    is_https: bool


def rest_tls(settings: Settings, use: TlsUse) -> RestTls:
    """TLS of the listeners in `use`; missing settings of an https listener are errors."""
    own = with_prefix(settings.values, use.prefix)
    prefix = use.prefix if own else ""
    names = own or {name: name for name in TLS_KEYS.names if name in settings.values}
    inner = Settings(
        {name: settings.values[key] for name, key in names.items()},
        settings.findings.within(names),
    )
    values = TLS_KEYS.parse(*inner)
    if use.is_https:
        _check(use, prefix, values, inner)
    security = {name: values[name] for name in TLS_KEYS.names if name in names}
    client_auth = security.pop(CLIENT_AUTH, NONE)
    return RestTls(security, client_auth, prefix)


def _check(use: TlsUse, prefix: str, values: Mapping[str, Any], inner: Settings) -> None:
    for name in inner.values:
        if name not in TLS_KEYS:
            inner.findings.warn_key(name, "unknown key, ignored")
    if not any(values[name] for name in KEY_STORES):
        inner.findings.error(
            use.key,
            None,
            "an https listener needs a key and a certificate",
            f"set {prefix}{KEY_STORES[0]}, or use http",
        )
    # Without one, some 140 public CAs would be trusted, which give a certificate to anyone.
    if values[CLIENT_AUTH] == REQUIRED and not any(values[name] for name in TRUST_STORES):
        inner.findings.error(
            CLIENT_AUTH,
            REQUIRED,
            "without a trust store, clients with a certificate of any public CA would be admitted",
            "set " + " or ".join(f"{prefix}{name}" for name in TRUST_STORES),
        )
