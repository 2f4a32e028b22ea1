"""Parses paths like Jetty and Jersey: which are rejected, and which template matches.

Runs on: worker. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import parse_qsl, unquote, unquote_to_bytes

from sparkmirror.rest.exception_mapper import BAD_MESSAGE, BadUri

_BAD_PERCENT = re.compile(r"%(?![0-9a-fA-F]{2})|%00")
_UTF_16 = re.compile(r"%u[0-9a-fA-F]{4}")
# Jetty rejects URIs that programs may interpret differently. In the order of its text.
_VIOLATIONS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"/(?=[^/;]*%2e)(?:%2e|\.){1,2}(?=[/;]|$)", re.I), "Ambiguous URI path segment"),
    (re.compile(r"//"), "Ambiguous URI empty segment"),
    (re.compile(r"%2f", re.I), "Ambiguous URI path separator"),
    (re.compile(r"/\.{1,2};"), "Ambiguous URI path parameter"),
    (re.compile(r"%25"), "Ambiguous URI path encoding"),
    (re.compile(r"\\|%5c|%[01][0-9a-f]|%7f", re.I), "Suspicious Path Character"),
    (re.compile(r"[^!$%&'()*+,./0-9:;=@A-Z_a-z~-]"), "Illegal Path Character"),
)


def check_path(raw_path: str) -> None:
    """Raises BadUri.

    A path starts with a slash (RFC 9112, origin-form). Other forms are for proxies, and would
    become part of the host's name where a path is appended to an address.
    """
    if not raw_path.startswith("/"):
        raise BadUri("Bad Request", BAD_MESSAGE)
    if _UTF_16.search(raw_path):
        raise BadUri("UTF-16 encoding")
    if _BAD_PERCENT.search(raw_path):
        raise BadUri("Bad Request", BAD_MESSAGE)
    try:
        unquote_to_bytes(raw_path).decode()
    except UnicodeDecodeError as error:
        raise BadUri("Bad UTF-8 encoding") from error
    found = [reason for pattern, reason in _VIOLATIONS if pattern.search(raw_path)]
    if found:
        raise BadUri(", ".join(found))


def split_path(raw_path: str) -> tuple[str, ...]:
    """The decoded segments, without anything after a semicolon; a final slash is ignored."""
    trimmed = raw_path.removesuffix("/").removeprefix("/")
    segments = trimmed.split("/") if trimmed else []
    return tuple(unquote(segment.partition(";")[0]) for segment in segments)


def match_path(template: Sequence[str], segments: Sequence[str]) -> Mapping[str, str] | None:
    """The values of a template's {names}; None if the path does not match."""
    if len(template) != len(segments):
        return None
    pairs = list(zip(template, segments, strict=True))
    if any(not _is_name(part) and part != segment for part, segment in pairs):
        return None
    return {part[1:-1]: segment for part, segment in pairs if _is_name(part)}


def _is_name(part: str) -> bool:
    return part.startswith("{")


def parse_query(query: str) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        values.setdefault(key, []).append(value)
    return values


def java_set_order(methods: Iterable[str]) -> list[str]:
    """Method names in the order of a Java HashSet, in which Jersey lists them."""
    known = ("HEAD", "DELETE", "POST", "GET", "OPTIONS", "PUT", "PATCH")
    names = set(methods)
    return [method for method in known if method in names]
