"""Which settings are secret, and the last line of defence: no text contains a known secret.

Runs on: worker and executor. Values of PASSWORD keys are `Secret`, which prints as `[hidden]`.
`mask` removes secrets that still get into text (a library's message, a value inside an error)
wherever text leaves the process: log lines, traces, errors of commands and of the REST API.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from urllib.parse import quote

HIDDEN = "[hidden]"
_SECRET_KEY = re.compile(
    r"password|passwd|passphrase|secret|jaas|token|credential|certificate"
    r"|(?:^|[._-]|access|api)key$|keystore\.key",
    re.IGNORECASE,
)
# Files, addresses and the like: they show where a secret is, not the secret.
_PLAIN_KEY = re.compile(
    r"[._-](?:location|file|files|path|paths|type|algorithm|class|url|id|name|enabled|enable|ms"
    r"|seconds)$",
    re.IGNORECASE,
)
# Options of a login module, or pairs of a query: name="value", name='value', name=value. It tries
# no word twice, because tokens are long words.
_OPTION = re.compile(
    r"""(?<![\w.-])([\w.-]++)\s*+=\s*+"""
    r"""(?:"((?:[^"\\]|\\.)*+)"|'((?:[^'\\]|\\.)*+)'|([^\s;&"']++))"""
)
_ADDRESS = re.compile(r"(?:\w+://)?\[?([^/@]+?)]?:\d+")
# Hiding shorter values, words and numbers would make a log unreadable, and they are hardly secret.
_SHORTEST = 6
_LONG = 12
# Values from a config provider are secret regardless of their keys' names; shorter ones too, if
# they are separate words. "true" and "9092" reveal nothing.
_SHORTEST_PROVIDED = 4
_SHORTEST_PROVIDED_NUMBER = 6
_PLAIN_VALUES = frozenset({"true", "false", "none", "null"})
# Secrets that change; a worker with hundreds of connectors has fewer.
_MOST_PASSING = 5000
# Longer secrets are searched one by one: compiling a pattern of a megabyte takes seconds.
_MOST_IN_PATTERN = 5000
# Secrets of one request that is only validated.
_MOST_PROVISIONAL = 1000


def is_secret(key: str) -> bool:
    """Whether the value of `key` may not be printed, known key or not."""
    return _SECRET_KEY.search(key) is not None and _PLAIN_KEY.search(key) is None


class _Known:
    """Secrets in every spelling; any thread may use it.

    The secrets of an owner (a connector; "" is the process itself) are kept until the owner is
    released, however many others there are. Tokens and secrets of released owners are passing: the
    oldest make room for new ones. A value is True if it came from a config provider.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[Hashable, dict[str, bool]] = {}
        self._passing: dict[str, bool] = {}
        # Made when needed: the pattern for most secrets, and those that are too long for it.
        self._search: tuple[re.Pattern[str] | None, list[str]] | None = None

    def keep(self, owner: Hashable, value: str, *, is_provided: bool = False) -> None:
        with self._lock:
            values = self._kept.setdefault(owner, {})
            if is_provided > values.get(value, -1):
                values[value] = is_provided
                self._search = None

    def add_passing(self, value: str, *, is_provided: bool = False) -> None:
        with self._lock:
            self._retire({value: is_provided})

    def release(self, owner: Hashable) -> None:
        with self._lock:
            self._retire(self._kept.pop(owner, {}))

    def replace(self, owner: Hashable, found: _Known) -> None:
        """From now on `owner` has exactly the secrets in `found`."""
        with self._lock:
            former = self._kept.pop(owner, {})
            self._kept[owner] = found.values()
            self._search = None
            self._retire(former)

    def values(self) -> dict[str, bool]:
        """All secrets."""
        found = dict(self._passing)
        for values in self._kept.values():
            for value, is_provided in values.items():
                found[value] = is_provided or found.get(value, False)
        return found

    def provided(self) -> list[str]:
        with self._lock:
            return [value for value, is_provided in self.values().items() if is_provided]

    def mask(self, text: str) -> str:
        with self._lock:
            if self._search is None:
                self._search = _any_of(self.values())
            pattern, long_ones = self._search
        for value in long_ones:
            text = text.replace(value, HIDDEN)
        return text if pattern is None else pattern.sub(HIDDEN, text)

    def _retire(self, values: Mapping[str, bool]) -> None:
        for value, is_provided in values.items():
            former = self._passing.pop(value, None)
            self._passing[value] = is_provided or bool(former)
            if former is None:
                self._search = None
        while len(self._passing) > _MOST_PASSING:
            del self._passing[next(iter(self._passing))]


class _Provisional(_Known):
    """The secrets of one request: its sender knows them already, so masking some is enough."""

    def keep(self, owner: Hashable, value: str, *, is_provided: bool = False) -> None:
        if is_provided or sum(map(len, self._kept.values())) < _MOST_PROVISIONAL:
            super().keep(owner, value, is_provided=is_provided)


_known = _Known()
_scope: ContextVar[_Known | None] = ContextVar("_scope", default=None)


def remember(value: str) -> None:
    """Hide `value` from now on, and the passwords among the options that it may consist of."""
    for secret in _secrets_in(value):
        _here().keep("", secret)


def remember_token(value: str) -> None:
    """Hide `value`, which will soon be replaced, until thousands of others have followed."""
    for secret in _secrets_in(value):
        _known.add_passing(secret)


def remember_provided(value: str) -> None:
    """Hide `value`, which comes from a config provider, regardless of its key's name."""
    remember(value)
    for text in _provided_forms(value):
        if _is_worth_hiding(text, is_provided=True):
            _here().keep("", text, is_provided=True)


def remember_secrets(props: Mapping[str, str]) -> None:
    """Hide the values of properties whose names suggest a secret."""
    for key, value in props.items():
        if is_secret(key):
            remember(value)


@contextmanager
def provisional() -> Iterator[Callable[[str], str]]:
    """Secrets that this thread remembers in the block are hidden only in the block.

    For settings that a request only validates: its sender can neither displace the secrets of
    others nor hide common words from later lines. Yields a `mask` for the response that hides only
    these secrets; with a wider one, the sender could guess the secrets of others.
    """
    found = _Provisional()
    token = _scope.set(found)
    try:
        yield found.mask
    finally:
        _scope.reset(token)


@contextmanager
def owned_by(owner: Hashable) -> Iterator[None]:
    """Secrets that this thread remembers in the block become the secrets of `owner`."""
    found = _Known()
    token = _scope.set(found)
    try:
        yield
    finally:
        _scope.reset(token)
        _known.replace(owner, found)


def forget_owner(owner: Hashable) -> None:
    """Release an owner that no longer exists: its secrets stay hidden for a while."""
    _known.release(owner)


def provided_in(texts: Iterable[str]) -> list[str]:
    """The values of config providers that occur in `texts`, for another process to hide too."""
    found = list(texts)
    return [value for value in _known.provided() if any(value in text for text in found)]


def mask(text: str) -> str:
    """`text` without any remembered secret."""
    scope = _scope.get()
    return _known.mask(text if scope is None else scope.mask(text))


def mask_words(text: str, values: Iterable[str]) -> str:
    """`text` without `values`, even short ones, where they are separate words."""
    words = {value.strip() for value in values} - {""}
    pattern = "|".join(map(_word, _longest_first(words)))
    return re.sub(pattern, HIDDEN, text) if words else text


def _provided_forms(value: str) -> set[str]:
    """The forms that messages may contain: all of it, list elements, the host of an address."""
    elements = [part.strip() for part in value.split(",")]
    if any(" " in part for part in elements):
        return {value, value.strip()}  # a sentence or a login module, whose words are not secret
    hosts = (found[1] for part in elements if (found := _ADDRESS.fullmatch(part)))
    return {value, value.strip(), *elements, *hosts}


def _here() -> _Known:
    return _scope.get() or _known


def _secrets_in(value: str) -> Iterator[str]:
    options = [
        option for name, *given in _OPTION.findall(value) if is_secret(name) for option in given
    ]
    return filter(_is_worth_hiding, (value, *options))


def _is_worth_hiding(value: str, *, is_provided: bool = False) -> bool:
    bare = value.strip()
    if is_provided:
        least = _SHORTEST_PROVIDED_NUMBER if bare.isdigit() else _SHORTEST_PROVIDED
        return len(bare) >= least and bare.lower() not in _PLAIN_VALUES
    return len(bare) >= (_LONG if value.isalpha() or value.isdigit() else _SHORTEST)


def _any_of(values: Iterable[str]) -> tuple[re.Pattern[str] | None, list[str]]:
    """A pattern that finds any of them, longest first, and those too long for a pattern."""
    spellings = {
        text: re.escape(text) if _is_worth_hiding(value) else _word(text)
        for value in values
        for text in _spellings(value)
    }
    longest_first = _longest_first(spellings)
    long_ones = [text for text in longest_first if len(text) > _MOST_IN_PATTERN]
    patterns = [spellings[text] for text in longest_first[len(long_ones) :]]
    return (re.compile("|".join(patterns)) if patterns else None), long_ones


def _longest_first(texts: Iterable[str]) -> list[str]:
    return sorted(texts, key=len, reverse=True)


def _word(text: str) -> str:
    before = r"(?<!\w)" if text[0].isalnum() else ""
    after = r"(?!\w)" if text[-1].isalnum() else ""
    return f"{before}{re.escape(text)}{after}"


def _spellings(value: str) -> Iterator[str]:
    """The value unchanged, as in a JSON or Python string, and as in a URL."""
    yield value
    yield json.dumps(value)[1:-1]
    yield repr(value)[1:-1]
    yield quote(value, safe="")
