"""Which addresses and files an OAUTHBEARER login may use.

Without limits, anyone who can create connectors could make the worker send any file of its disk to
any address (Kafka: CVE-2025-27817). Kafka 4 reads the two lists from system properties, which also
apply here if the file does not set the lists. They limit settings from the REST API, not those of a
worker's own file, which belongs to its operator.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from sparkmirror.config.config_def import JAVA_BLANKS, BadValue, Definition, Key, Type, parse_list
from sparkmirror.config.files.java_options import option_in_use
from sparkmirror.config.findings import Findings, Settings
from sparkmirror.config.security.jaas import parse_jaas
from sparkmirror.config.security.sasl import ENDPOINT_URL, JAAS, STRIMZI_ENDPOINT

ALLOWED_URLS = "sasl.oauthbearer.allowed.urls"
ALLOWED_FILES = "sasl.oauthbearer.allowed.files"
SYSTEM_PROPERTY = "org.apache.kafka."
FILE_KEYS = tuple(
    f"sasl.oauthbearer.assertion.{name}" for name in ("file", "private.key.file", "template.file")
)
NOT_ALLOWED = tuple(f"{key} does not list it" for key in (ALLOWED_URLS, ALLOWED_FILES))

ALLOWED_KEYS = Definition(
    Key(
        name=ALLOWED_URLS,
        type=Type.LIST,
        default=None,
        shown_default="none for connectors of the REST API, all for the file itself",
        doc="URLs of token servers (and `file:` URLs) that logins may use, spelled as in the "
        "connectors.",
    ),
    Key(
        name=ALLOWED_FILES,
        type=Type.LIST,
        default=None,
        shown_default="none for connectors of the REST API, all for the file itself",
        doc="Files that logins may read: tokens, assertions, their templates and keys.",
    ),
)


@dataclass(frozen=True, slots=True)
class AllowedAccess:
    """The lists; None: everything is allowed.

    Names are compared as written: where `/a` is a link, `/a/../b` is not the file `/b`.
    """

    urls: Collection[str] | None = None
    files: Collection[str] | None = None

    def check(self, settings: Settings) -> None:
        """Report every setting, of any client, that names something else."""
        for key, value in settings.values.items():
            if _is(key, ENDPOINT_URL):
                self._check_url(key, value.strip(JAVA_BLANKS), settings.findings)
            elif _is(key, JAAS):
                for url in login_urls(value):
                    self._check_url(key, url, settings.findings)
            elif any(_is(key, name) for name in FILE_KEYS):
                self._check_file(key, value.strip(JAVA_BLANKS), settings.findings)

    def _check_url(self, key: str, url: str, findings: Findings) -> None:
        if self.urls is None or url in self.urls or not url:
            return
        path = _path_of(url)
        is_listed = path is not None and (self.files is None or path in self.files)
        if not is_listed:
            findings.error(key, url, NOT_ALLOWED[0], _remedy(ALLOWED_URLS))

    def _check_file(self, key: str, path: str, findings: Findings) -> None:
        if path and self.files is not None and path not in self.files:
            findings.error(key, path, NOT_ALLOWED[1], _remedy(ALLOWED_FILES))


def allowed_access(values: Mapping[str, Any], *, default: Collection[str] | None) -> AllowedAccess:
    """The lists of a file or of KAFKA_OPTS; `default` where neither has one."""
    return AllowedAccess(*(_list(values, key, default) for key in (ALLOWED_URLS, ALLOWED_FILES)))


def _list(
    values: Mapping[str, Any], key: str, default: Collection[str] | None
) -> Collection[str] | None:
    if values[key] is not None:
        return frozenset(values[key])
    given = option_in_use(SYSTEM_PROPERTY + key)
    try:
        return default if given is None else frozenset(parse_list(given.strip()))
    except BadValue:  # an empty element, which no setting can match
        return frozenset(part.strip() for part in (given or "").split(","))


def _remedy(key: str) -> str:
    return f"add it to {key} in the worker's file"


def _is(key: str, name: str) -> bool:
    """Whether the key is `name`, or `name` of one of the clients: source.consumer.<name>."""
    return key == name or key.endswith(f".{name}")


def login_urls(jaas: str) -> Iterator[str]:
    """URLs of token servers in a login module."""
    try:
        options = parse_jaas(jaas).options
    except BadValue:  # reported where the login is checked
        return
    if url := options.get(STRIMZI_ENDPOINT):
        yield url


def _path_of(url: str) -> str | None:
    try:
        parts = urlsplit(url)
    except ValueError:  # reported where the URL is checked
        return None
    return unquote(parts.path) if parts.scheme == "file" else None
