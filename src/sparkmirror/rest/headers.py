"""Headers that the worker's settings add to answers: `response.http.headers.config` and CORS.

Runs on: worker. Pure.
"""

from __future__ import annotations

import csv
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import formatdate

from sparkmirror.errors import ConfigError

_KEY = "response.http.headers.config"
_ACTIONS = ("set", "add", "setDate", "addDate")
_RULE = re.compile(r"^(\w+)\s+([^:\s]+)\s*:\s*(.*)$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class HeaderRule:
    """One header of every answer. The value of a date is milliseconds from now."""

    action: str
    name: str
    value: str

    @property
    def replaces(self) -> bool:
        return self.action.startswith("set")

    def text(self, now_seconds: float) -> str:
        if self.action.endswith("Date"):
            return formatdate(now_seconds + int(self.value) / 1000, usegmt=True)
        return self.value


def parse_header_rules(text: str) -> list[HeaderRule]:
    """`action name: value`, separated by commas; a rule with commas in it stands in quotes."""
    rows = csv.reader([text], skipinitialspace=True)
    return [_rule(part.strip()) for row in rows for part in row if part.strip()]


def _rule(text: str) -> HeaderRule:
    match = _RULE.match(text)
    if match is None or match[1] not in _ACTIONS:
        raise ConfigError(
            _KEY, text, "is not 'action name: value'", f"use one of the actions {_ACTIONS}"
        )
    if match[1].endswith("Date") and not match[3].removeprefix("-").isdigit():
        raise ConfigError(_KEY, text, "a date needs a number of milliseconds from now")
    return HeaderRule(match[1], match[2], match[3])


def apply_rules(
    rules: Sequence[HeaderRule], headers: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    result = list(headers)
    now = time.time()
    for rule in rules:
        if rule.replaces:
            result = [item for item in result if item[0].lower() != rule.name.lower()]
        result.append((rule.name, rule.text(now)))
    return result


class CrossOrigin:
    """Which pages of other sites may use the API (`access.control.allow.*`).

    Origins are regular expressions, or * for all.
    """

    def __init__(self, allow_origin: str, allow_methods: str) -> None:
        patterns = [part.strip() for part in allow_origin.split(",") if part.strip()]
        self._any = "*" in patterns
        self._patterns = [re.compile(part) for part in patterns if part != "*"]
        self._methods = allow_methods.replace(" ", "") or "GET,POST,HEAD"

    def headers(self, method: str, request: Mapping[str, str]) -> list[tuple[str, str]]:
        """What to add to the answer to a request with these headers (names in lower case)."""
        if not self._any and not self._patterns:
            return []
        origin = request.get("origin", "")
        added = [("Vary", "Origin")]
        if origin and self._allows(origin):
            added.append(("Access-Control-Allow-Origin", origin))
            if method == "OPTIONS" and "access-control-request-method" in request:
                added += self._preflight()
        return added

    def _preflight(self) -> list[tuple[str, str]]:
        return [
            ("Access-Control-Allow-Methods", self._methods),
            ("Access-Control-Allow-Headers", "Content-Type"),
            ("Access-Control-Max-Age", "60"),
        ]

    def _allows(self, origin: str) -> bool:
        return self._any or any(pattern.fullmatch(origin) for pattern in self._patterns)
