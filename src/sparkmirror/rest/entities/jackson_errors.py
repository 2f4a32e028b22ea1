"""Reports unusable JSON in Jackson's words, with line and column.

Runs on: worker. Pure. Python's json reads bodies (request_bodies.py). This module rereads a body
only when it is unusable, to find the place and Jackson's words: those of the recorded responses
(tests/golden_rest/odd_requests.jsonl), plain ones for everything else. It works on bytes (as
latin-1), because Jackson counts columns in bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, NoReturn

from sparkmirror.rest.exception_mapper import JsonError

_HIDDEN = "REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled)"
_VALUES = "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')"
_MAX_DEPTH = 1000
_BLANK = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*')
_HALF_CODE = re.compile(r"u[0-9a-fA-F]{0,3}")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_VALUE = "string value"
_ENDS = {_VALUE: "VALUE_STRING", "name": "field name"}
_NO_DIGIT_AFTER = {
    "-": "expected digit (0-9) to follow minus sign, for valid numeric value",
    ".": "Decimal point not followed by a digit",
    "e": "Exponent indicator not followed by a digit",
}
_PLUS = (
    "JSON spec does not allow numbers to have plus signs: "
    "enable `JsonReadFeature.ALLOW_LEADING_PLUS_SIGN_FOR_NUMBERS` to allow"
)
_CLOSERS = {"{": "}", "[": "]"}
_NAMES = {"{": "Object", "[": "Array"}

Path = tuple[str | int, ...]


class ParseEvent(NamedTuple):
    """A value begins (`opens`), or an object or array ends; `at` is its first or next byte."""

    path: Path
    at: int
    opens: bool


def place(text: str, offset: int | None) -> str:
    """[Source: ...; line: 1, column: 2], both from 1; without an offset, only a line."""
    if offset is None:
        return f"[Source: {_HIDDEN}; line: 1]"
    line = text.count("\n", 0, offset) + 1
    column = offset - (text.rfind("\n", 0, offset) + 1) + 1
    return f"[Source: {_HIDDEN}; line: {line}, column: {column}]"


def refuse(text: str, message: str, offset: int | None, chain: str = "") -> NoReturn:
    through = f" (through reference chain: {chain})" if chain else ""
    raise JsonError(f"{message}\n at {place(text, offset)}{through}")


class Scanner:
    """Walks over one JSON value and stops at the first byte that Jackson would reject.

    `chain` makes the reference chain of a path; `inside`: the error is within a string there.
    """

    def __init__(self, text: str, chain: Callable[[Path, bool], str]) -> None:
        self._text = text
        self._chain = chain
        self._at = 0
        self._open: list[tuple[str, int]] = []  # bracket and its place
        self._path: list[str | int] = []

    def events(self) -> Iterator[ParseEvent]:
        """The beginnings of all values and the ends of objects and arrays, in text order."""
        self._skip_blanks()
        yield from self._begin_value()
        while self._open:
            yield from self._next_in(self._open[-1][0])

    def next_token(self) -> int | None:
        """Where something follows the value, if anything does."""
        self._skip_blanks()
        char = self._peek()
        if char in ("}", "]") and char:
            name = next(_NAMES[opening] for opening, end in _CLOSERS.items() if end == char)
            self._fail(f"Unexpected close marker '{char}': no open {name} to close")
        start = self._at
        for _ in self._begin_value() if char else ():
            pass
        return start if char else None

    def _next_in(self, bracket: str) -> Iterator[ParseEvent]:
        self._skip_blanks(closing=True)
        if self._peek() in ("}", "]"):
            self._close()
            yield ParseEvent(tuple(self._path), self._at, opens=False)
            return
        first = self._is_first()
        if not first:
            self._expect(",", f"comma to separate {_NAMES[bracket]} entries")
            self._skip_blanks()
        self._enter_entry(bracket, first)
        yield from self._begin_value()

    def _is_first(self) -> bool:
        return len(self._path) < len(self._open)

    def _enter_entry(self, bracket: str, first: bool) -> None:
        if bracket == "{":
            key = self._field_name()
            self._path[len(self._open) - 1 :] = [key]
        else:
            index = 0 if first else int(self._path[-1]) + 1
            self._path[len(self._open) - 1 :] = [index]

    def _field_name(self) -> str:
        if self._peek() != '"':
            self._unexpected("was expecting double-quote to start field name")
        name = self._string("name")
        self._skip_blanks()
        self._expect(":", "a colon to separate field name and value")
        self._skip_blanks()
        return name

    def _begin_value(self) -> Iterator[ParseEvent]:
        char = self._peek()
        if char in ("{", "[", '"') and char:
            yield ParseEvent(tuple(self._path), self._at, opens=True)
            self._begin_long(char)
        else:
            # Jackson reads a whole number or word before it checks its type.
            start = self._at
            self._begin_short(char)
            yield ParseEvent(tuple(self._path), start, opens=True)

    def _begin_long(self, char: str) -> None:
        if char == '"':
            self._string(_VALUE)
        else:
            self._push(char)

    def _begin_short(self, char: str) -> None:
        if char == "-" or char.isdigit():
            self._number()
        else:
            self._word()

    def _push(self, bracket: str) -> None:
        self._open.append((bracket, self._at))
        self._at += 1
        if len(self._open) > _MAX_DEPTH:
            self._fail(f"The body has more than {_MAX_DEPTH} levels")

    def _close(self) -> None:
        bracket, start = self._open[-1]
        if self._peek() != _CLOSERS[bracket]:
            self._fail(
                f"Unexpected close marker '{self._peek()}': expected '{_CLOSERS[bracket]}'"
                f" (for {_NAMES[bracket]} starting at {place(self._text, start)})"
            )
        self._open.pop()
        del self._path[len(self._open) :]
        self._at += 1

    def _string(self, what: str) -> str:
        match = _STRING.match(self._text, self._at)
        assert match is not None  # the caller has seen the quote
        start, self._at = self._at + 1, match.end()
        if self._peek() != '"':
            self._bad_string(what)
        self._at += 1
        return self._text[start : self._at - 1]

    def _bad_string(self, what: str) -> NoReturn:
        char = self._peek()
        inside = what == _VALUE
        if not char:
            self._fail(f"Unexpected end-of-input in {_ENDS[what]}", inside=inside)
        if char == "\\":
            self._bad_escape(inside)
        self._fail(
            f"Illegal unquoted character ({_describe(char)}): "
            f"has to be escaped using backslash to be included in {what}",
            inside=inside,
        )

    def _bad_escape(self, inside: bool) -> NoReturn:
        self._at += 1
        hexadecimal = _HALF_CODE.match(self._text, self._at)
        if hexadecimal is None:
            self._fail(f"Unrecognized character escape {_describe(self._peek())}", inside=inside)
        self._at = hexadecimal.end()
        expected = "expected a hex-digit for character escape sequence"
        self._fail(f"Unexpected character ({_describe(self._peek())}): {expected}", inside=inside)

    def _number(self) -> None:
        match = _NUMBER.match(self._text, self._at)
        if match is None:
            self._at += 1
            self._unexpected(_NO_DIGIT_AFTER["-"], " in numeric value")
        self._at = match.end()
        if match.group().lstrip("-") == "0" and self._peek().isdigit():
            self._fail("Invalid numeric value: Leading zeroes not allowed")
        after = _NO_DIGIT_AFTER.get(self._peek().lower())
        if after and self._peek() != "-":
            self._at += 1
            self._unexpected(after, " in numeric value")

    def _word(self) -> None:
        match = _WORD.match(self._text, self._at)
        if match is None:
            self._no_value()
        word = match.group()
        if word == "NaN":
            self._at = match.end()
            feature = "`JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS`"
            self._fail(f"Non-standard token '{word}': enable {feature} to allow")
        if word not in ("true", "false", "null"):
            self._fail(f"Unrecognized token '{word}': was expecting {_VALUES}")
        self._at = match.end()

    def _no_value(self) -> NoReturn:
        char = self._peek()
        if char == "/":
            self._unexpected(
                "maybe a (non-standard) comment? (not recognized as one since Feature"
                " 'ALLOW_COMMENTS' not enabled for parser)"
            )
        if char == "+":
            self._unexpected(_PLUS, " in numeric value", after=True)
        in_array = bool(self._open) and self._open[-1][0] == "["
        missing = char in ("}", ",") or (char == "]" and in_array)
        self._unexpected("expected a value" if missing else f"expected a valid value {_VALUES}")

    def _expect(self, char: str, what: str) -> None:
        if self._peek() != char:
            self._unexpected(f"was expecting {what}")
        self._at += 1

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _skip_blanks(self, *, closing: bool = False) -> None:
        match = _BLANK.match(self._text, self._at)
        assert match is not None  # it matches nothing, too
        self._at = match.end()
        if self._at < len(self._text) or not (self._open or closing):
            return
        bracket, start = self._open[-1]
        if closing:
            marker = f"close marker for {_NAMES[bracket]} (start marker at "
            self._fail(f"Unexpected end-of-input: expected {marker}{place(self._text, start)})")
        self._fail(f"Unexpected end-of-input within/between {_NAMES[bracket]} entries")

    def _unexpected(self, expected: str, where: str = "", *, after: bool = False) -> NoReturn:
        self._fail(f"Unexpected character ({_describe(self._peek())}){where}: {expected}", after)

    def _fail(self, message: str, after: bool = False, *, inside: bool = False) -> NoReturn:
        """`after`: the byte counts as read; `inside`: within a value, not between values."""
        depth = max(len(self._open) - (not inside), 0)
        chain = self._chain(tuple(self._path[:depth]), inside)
        refuse(self._text, message, self._at + after, chain)


def _describe(char: str) -> str:
    if char and ord(char) < 32:
        return f"(CTRL-CHAR, code {ord(char)})"
    return f"'{char}' (code {ord(char) if char else -1})"
