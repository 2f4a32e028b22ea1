"""Headers to add to responses: `response.http.headers.config`, CORS, protection in browsers.

Runs on: worker. Pure.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from email.utils import formatdate

from sparkmirror.config.patterns.java_regex import compile_patterns
from sparkmirror.config.worker.rest_keys import HeaderRule

# An API has no scripts, frames or pictures; responses may contain settings, which must not be
# cached.
SAFE_HEADERS = (
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-store"),
)


def safe_headers(scheme: str, protected: bool) -> tuple[tuple[str, str], ...]:
    """For responses over https or behind a login; none where everything is open.

    Without Strict-Transport-Security: it would apply to everything else on the host too.
    """
    return SAFE_HEADERS if protected or scheme == "https" else ()


def apply_rules(
    rules: Sequence[HeaderRule], headers: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    """`set` replaces headers of that name, `add` adds one."""
    result = list(headers)
    for rule in rules:
        if rule.action.startswith("set"):
            result = [item for item in result if item[0].lower() != rule.name.lower()]
        result.append((rule.name, _value(rule)))
    return result


def _value(rule: HeaderRule) -> str:
    """The value; dates are configured in milliseconds from now."""
    if rule.action.endswith("Date"):
        return formatdate(time.time() + int(rule.value) / 1000, usegmt=True)
    return rule.value


class CrossOrigin:
    """Which pages of other sites may use the API (`access.control.allow.*`).

    Origins are regular expressions, or * for all.
    """

    def __init__(self, allow_origin: str, allow_methods: str) -> None:
        patterns = [part.strip() for part in allow_origin.split(",") if part.strip()]
        self._any = "*" in patterns
        compiled = (compile_patterns([part]) for part in patterns if part != "*")
        self._patterns = [pattern for pattern in compiled if pattern is not None]
        self._methods = allow_methods.replace(" ", "") or "GET,POST,HEAD"

    def headers(self, method: str, request: Mapping[str, str]) -> list[tuple[str, str]]:
        """Headers to add to the response to a request with these headers (names in lower case)."""
        if not self._any and not self._patterns:
            return []
        origin = request.get("origin", "")
        added = [("Vary", "Origin")]
        if origin and self.allows(origin):
            added.append(("Access-Control-Allow-Origin", origin))
            if self.is_preflight(method, request):
                added += self._preflight()
        return added

    def is_preflight(self, method: str, request: Mapping[str, str]) -> bool:
        """Whether a browser asks what a page of an allowed site may do; it sends no password."""
        asks = method == "OPTIONS" and "access-control-request-method" in request
        return asks and self.allows(request.get("origin", ""))

    def _preflight(self) -> list[tuple[str, str]]:
        return [
            ("Access-Control-Allow-Methods", self._methods),
            ("Access-Control-Allow-Headers", "Content-Type"),
            ("Access-Control-Max-Age", "60"),
        ]

    def allows(self, origin: str) -> bool:
        """Whether pages of `origin` may use the API."""
        return self._any or any(pattern.fullmatch(origin) for pattern in self._patterns)
