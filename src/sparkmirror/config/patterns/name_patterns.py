"""Matches names of topics, groups and settings in bounded time.

Python's engine backtracks: `(a+)+b` takes years for a name of forty letters, and holds the GIL,
which all threads need. So RE2 does the matching, in linear time. For features
that RE2 lacks (look-around, back references, possessive repeats), Python's engine runs in a
separate process that ends when a match takes too long: the result is then an error, never a guess.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import signal
import subprocess
import sys
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from sparkmirror.config.patterns import match_process
from sparkmirror.errors import MirrorError

# A few megabytes would mean hundreds of thousands of states for every character.
RE2_BYTES = 1 << 20
# As many topics as the largest clusters have; each refresh repeats the same names.
MOST_KNOWN = 50_000


class Matcher(Protocol):
    """The part of an expression that filters need; re.Pattern also has it."""

    def fullmatch(self, name: str, /) -> object:
        """None unless the whole name matches."""


@dataclass(frozen=True, slots=True)
class NamePattern:
    """An expression that matches whole names; any thread may use it. `source` is the user's text.

    `python` and `linear` are its two spellings; `linear` is None when RE2 has none. `folds`: it
    ignores case, which RE2 does beyond ASCII and Java does not.
    """

    source: str
    python: str = field(repr=False)
    linear: str | None = field(repr=False)
    folds: bool = False

    def fullmatch(self, name: str) -> Literal[True] | None:
        """True if the whole name matches, else None.

        Raises:
            MirrorError: the expression takes too long for this name.
        """
        engine = self._engine(name)
        if engine is not None:
            return True if engine.fullmatch(name) is not None else None
        return True if _others.fullmatch(self, name) else None

    # The expression is anchored: all three mean the same.
    match = search = fullmatch

    def _engine(self, name: str) -> Any:
        """RE2's expression, if it means the same for this name as Java's and Python's."""
        is_odd = "\n" in name or not (name.isascii() or _is_plain_text(name, self.folds))
        return None if is_odd or self.linear is None else _re2(self.linear)


def _is_plain_text(name: str, folds: bool) -> bool:
    has_halves = any("\ud800" <= char <= "\udfff" for char in name)
    return not folds and not has_halves


@functools.lru_cache(maxsize=256)
def _re2(pattern: str) -> Any:
    """None if RE2 lacks a feature of the expression."""
    # Imported here: executors read settings but match nothing, and may lack the package.
    import re2  # noqa: PLC0415

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = RE2_BYTES
    try:
        return re2.compile(pattern, options=options)
    except re2.error:
        return None


class _OtherProcess:
    """Sends requests to a process that runs `match_process`, and starts it when needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._known: OrderedDict[tuple[str, str], bool] = OrderedDict()

    def fullmatch(self, pattern: NamePattern, name: str) -> bool:
        key = (pattern.python, name)
        with self._lock:
            if key not in self._known:
                self._known[key] = self._ask(pattern, name)
                if len(self._known) > MOST_KNOWN:
                    self._known.popitem(last=False)
            return self._known[key]

    def _ask(self, pattern: NamePattern, name: str) -> bool:
        request = json.dumps([pattern.python, name]) + "\n"
        for _ in range(2):  # someone may have killed the process: then retry once
            response = self._exchange(request)
            if response:
                return bool(json.loads(response))
            if self._end() == -signal.SIGVTALRM:
                raise _too_slow(pattern, name)
        raise MirrorError(f"match '{name}' with '{pattern.source}': the matching process has ended")

    def _exchange(self, request: str) -> str:
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(request)
            process.stdin.flush()
            return process.stdout.readline()
        except BrokenPipeError:
            return ""

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            # It ends with its input, so with us; its own session protects it from our Ctrl-C.
            atexit.register(self.close)
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", match_process.__file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="ascii",
                start_new_session=True,
            )
        return self._process

    def close(self) -> None:
        """End the process, if there is one."""
        atexit.unregister(self.close)
        with self._lock:
            if self._process is not None:
                self._end()

    def _end(self) -> int:
        """Kill the process; returns its exit code."""
        process, self._process = self._process, None
        assert process is not None
        process.kill()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):  # the buffer has unread input
                stream.close()
        return process.wait()


_others = _OtherProcess()
# For tests, which must leave no process behind.
close_process = _others.close


def _too_slow(pattern: NamePattern, name: str) -> MirrorError:
    return MirrorError(
        f"match '{name}' with the expression '{pattern.source}': not done after "
        f"{match_process.SECONDS:g} s; write it without nested repeats, or without look-around "
        "((?=, (?!, (?<=, (?<!), back references and possessive repeats, which need a slow engine"
    )
