r"""The value of `sasl.jaas.config`: a login module, its flag and its options.

    org.apache.kafka.common.security.plain.PlainLoginModule required
        username="alice" password="it's \"quoted\"";

Kafka parses it with java.io.StreamTokenizer; this module has the same words, quotes, escapes,
numbers and comments (a single slash begins one too). Mirrors: org.apache.kafka.common.security.
JaasConfig (4.3). Errors name a line and a column, never a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from sparkmirror.config.config_def import BadValue

FLAGS = ("required", "requisite", "sufficient", "optional")
ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
OCTAL = "01234567"
LINE_ENDS = "\r\n"


class JaasTokenKind(Enum):
    """The kinds of tokens of StreamTokenizer; only words and strings can be names or values."""

    TEXT = "a name or value"
    NUMBER = "a number"
    SIGN = "a sign"
    END = "the end"


@dataclass(frozen=True, slots=True)
class JaasToken:
    """`text` is the content of a word or string, or the sign itself; `at` counts characters."""

    kind: JaasTokenKind
    text: str
    at: int


@dataclass(frozen=True, slots=True)
class LoginModule:
    """One entry; options keep their order, and are not in the repr because they may be secret."""

    name: str
    flag: str
    options: Mapping[str, str] = field(repr=False)

    def is_true(self, option: str) -> bool:
        """Whether a yes-or-no option is set, as Java's login modules read it."""
        return self.options.get(option, "").strip().lower() in ("true", "yes")


def parse_jaas(text: str) -> LoginModule:
    """The only login module of `text`. Raises BadValue."""
    modules = list(_Parser(text).modules())
    if not modules:
        raise BadValue("has no login module", _remedy())
    if len(modules) > 1:
        raise BadValue(
            f"has {len(modules)} login modules, but a client uses only one", "remove the others"
        )
    return modules[0]


def _remedy() -> str:
    return 'write it as: <login module class> required username="..." password="...";'


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)

    def modules(self) -> Iterator[LoginModule]:
        while (token := next(self._tokens)).kind is not JaasTokenKind.END:
            yield self._module(token)

    def _module(self, name: JaasToken) -> LoginModule:
        if name.kind is not JaasTokenKind.TEXT or not name.text:
            raise self._bad("the class of a login module is missing", name)
        flag = next(self._tokens)
        if flag.kind is not JaasTokenKind.TEXT or flag.text.lower() not in FLAGS:
            raise self._bad(f"after the login module comes one of {', '.join(FLAGS)}", flag)
        return LoginModule(name.text, flag.text.lower(), self._options())

    def _options(self) -> dict[str, str]:
        options: dict[str, str] = {}
        while (key := next(self._tokens)).text != ";" or key.kind is not JaasTokenKind.SIGN:
            if key.kind is JaasTokenKind.END:
                raise self._bad("no semicolon ends the login module", key, 'end it with ";"')
            if key.kind is not JaasTokenKind.TEXT:
                raise self._bad("the name of an option is missing", key)
            options[key.text] = self._value(key)
        return options

    def _value(self, key: JaasToken) -> str:
        equals = next(self._tokens)
        if equals.kind is not JaasTokenKind.SIGN or equals.text != "=":
            # The token is not shown: it may be the rest of an unquoted password.
            raise self._bad("an option has no value", key, 'write options as name="value"')
        value = next(self._tokens)
        if value.kind is not JaasTokenKind.TEXT:
            raise self._bad("the value of an option is missing or not quoted", value)
        return value.text

    def _bad(self, reason: str, token: JaasToken, remedy: str = "") -> BadValue:
        before = self._text[: token.at]
        line = before.count("\n") + 1
        column = len(before) - (before.rfind("\n") + 1) + 1
        place = f"column {column}" if line == 1 else f"line {line}, column {column}"
        return BadValue(f"{reason} ({place})", remedy or 'put every value in quotes: name="value"')


def _tokens(text: str) -> Iterator[JaasToken]:
    """All tokens in `text`; after the last one, END without limit."""
    at = 0
    while at < len(text):
        start, char = at, text[at]
        if char <= " ":
            at += 1
        elif char in "\"'":
            value, at = _quoted(text, at)
            yield JaasToken(JaasTokenKind.TEXT, value, start)
        elif char == "/":
            at = _after_comment(text, at)
        elif _begins_number(text, at):
            at = _after(text, at + 1, lambda each: each in "0123456789.")
            yield JaasToken(JaasTokenKind.NUMBER, text[start:at], start)
        elif _is_letter(char) and char != "-":  # a minus that does not begin a number is a sign
            at = _after(text, at, lambda each: _is_letter(each) or each in "0123456789.")
            yield JaasToken(JaasTokenKind.TEXT, text[start:at], start)
        else:
            at += 1
            yield JaasToken(JaasTokenKind.SIGN, char, start)
    while True:
        yield JaasToken(JaasTokenKind.END, "", len(text))


def _is_letter(char: str) -> bool:
    is_latin = "a" <= char <= "z" or "A" <= char <= "Z"
    return is_latin or char in "-_$" or char >= "\u00a0"


def _begins_number(text: str, at: int) -> bool:
    """Digits and dots begin a number; a minus only before one of them."""
    following = text[at + 1 : at + 2]
    return text[at] in "0123456789." or (
        text[at] == "-" and following != "" and following in "0123456789."
    )


def _after(text: str, at: int, belongs: Callable[[str], bool]) -> int:
    while at < len(text) and belongs(text[at]):
        at += 1
    return at


def _after_comment(text: str, at: int) -> int:
    """`/* ... */`, or from any other slash to the end of the line.

    By then Java has read the character after the slash: if it ends a line, the next line counts.
    """
    if text.startswith("/*", at):
        end = text.find("*/", at + 2)
        return len(text) if end < 0 else end + 2
    return _after(text, at + 2, lambda each: each not in LINE_ENDS)


def _quoted(text: str, at: int) -> tuple[str, int]:
    """The string that begins at `at`, and the position after it; a line end also ends it."""
    quote, value = text[at], []
    at += 1
    while at < len(text) and text[at] != quote and text[at] not in LINE_ENDS:
        if text[at] == "\\":
            char, at = _escaped(text, at + 1)
        else:
            char, at = text[at], at + 1
        value.append(char)
    closed = at < len(text) and text[at] == quote
    return "".join(value), at + closed


def _escaped(text: str, at: int) -> tuple[str, int]:
    first = text[at : at + 1]
    if first == "" or first not in OCTAL:
        return ESCAPES.get(first, first), at + 1
    most = 3 if first <= "3" else 2
    end = at
    while end < min(at + most, len(text)) and text[end] in OCTAL:
        end += 1
    return chr(int(text[at:end], 8)), end
