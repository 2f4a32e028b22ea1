"""Which settings are secret, and the last line of defence: no known secret gets into any text.

Runs on: worker and executor. Values of PASSWORD keys are `Secret`, which prints as `[hidden]`; what
slips past that (a library's own words, a value inside an error) is taken out by `mask` wherever
text leaves the process: log lines, traces, errors of commands and of the REST API.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Iterator, Mapping
from urllib.parse import quote

HIDDEN = "[hidden]"
_SECRET_KEY = re.compile(
    r"password|passwd|passphrase|secret|jaas|token|credential|certificate"
    r"|(?:^|[._-]|access|api)key$|keystore\.key",
    re.IGNORECASE,
)
# Names of files, addresses and the like: they say where a secret is, not what it is.
_PLAIN_KEY = re.compile(
    r"[._-](?:location|file|files|path|paths|type|algorithm|class|url|id|name|enabled|enable|ms"
    r"|seconds)$",
    re.IGNORECASE,
)
# Options of a login module, or pairs of a query: name="value", name='value', name=value. It tries
# no word twice: tokens are one long word.
_OPTION = re.compile(
    r"""(?<![\w.-])([\w.-]++)\s*+=\s*+"""
    r"""(?:"((?:[^"\\]|\\.)*+)"|'((?:[^'\\]|\\.)*+)'|([^\s;&"']++))"""
)
# Shorter ones, words and numbers would make a log unreadable, and are no secrets to anybody.
_SHORTEST = 6
_LONG = 12
# Of secrets that change; more than a worker with hundreds of connectors has.
_MOST = 5000


def is_secret(key: str) -> bool:
    """Whether the value of `key` may not be printed, known key or not."""
    return _SECRET_KEY.search(key) is not None and _PLAIN_KEY.search(key) is None


class _Known:
    """The secrets that this process has seen, in every spelling; for any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, None] = {}
        self._pattern: re.Pattern[str] | None = None

    def add(self, value: str) -> None:
        if value in self._values or not _is_worth_hiding(value):
            return
        with self._lock:
            self._values[value] = None
            while len(self._values) > _MOST:
                del self._values[next(iter(self._values))]
            self._pattern = None

    def pattern(self) -> re.Pattern[str] | None:
        """Finds any of them, the longest first; None while there are none."""
        if self._values and self._pattern is None:
            with self._lock:
                spellings = {text for value in self._values for text in _spellings(value)}
                words = sorted(spellings, key=len, reverse=True)
                self._pattern = re.compile("|".join(map(re.escape, words)))
        return self._pattern


_known = _Known()


def remember(value: str) -> None:
    """Never show `value` again, nor the passwords among the options that it may consist of."""
    _known.add(value)
    for name, *given in _OPTION.findall(value):
        if is_secret(name):
            for option in given:
                _known.add(option)


def remember_secrets(props: Mapping[str, str]) -> None:
    """The same for every property that looks like a secret by its name."""
    for key, value in props.items():
        if is_secret(key):
            remember(value)


def mask(text: str) -> str:
    """`text` without any secret that was remembered."""
    pattern = _known.pattern()
    return text if pattern is None else pattern.sub(HIDDEN, text)


class MaskingFormatter(logging.Formatter):
    """Formats log lines, with their traces, without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        return mask(super().format(record))


def _is_worth_hiding(value: str) -> bool:
    is_word = value.isalpha() or value.isdigit()
    return len(value.strip()) >= (_LONG if is_word else _SHORTEST)


def _spellings(value: str) -> Iterator[str]:
    """As it is, as a JSON or Python string has it, and as a URL has it."""
    yield value
    yield json.dumps(value)[1:-1]
    yield repr(value)[1:-1]
    yield quote(value, safe="")
