"""Java regular expressions in Python: the filters of MirrorMaker 2 are lists of them.

The elements of a list are joined with `|` into one expression *before* it is parsed, as in
MirrorMaker 2: `(orders,payments)-.*` is a list of two elements and one valid expression.
Expressions that Python cannot represent are rejected with a reason, never guessed. Each expression
is translated to Python's and to RE2's spelling; `name_patterns` decides which of them matches.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence

from sparkmirror.config.config_def import BadValue
from sparkmirror.config.patterns.name_patterns import NamePattern

# Java's POSIX classes are ASCII unless a flag changes that.
POSIX = {
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Lower": "a-z",
    "Upper": "A-Z",
    "Punct": "".join(f"\\{char}" for char in string.punctuation),
    "Space": r" \t\n\x0b\f\r",
    "XDigit": "0-9a-fA-F",
    "ASCII": r"\x00-\x7f",
}
# The only Unicode class in common use; in brackets it would be several thousand ranges.
LETTERS = ("L", "IsL", "IsAlphabetic")
PYTHON_LETTERS, LINEAR_LETTERS = r"(?u:[^\W\d_])", r"\p{L}"
SAME_IN_BOTH = frozenset("dDwWsSbBAtnrfa123456789")
OTHER_ESCAPES = {"z": r"\Z", "Z": r"(?=\n?\Z)", "e": r"\x1b"}
# RE2 matches only names without line ends, for which \z and \Z mean the same.
LINEAR_ESCAPES = {**OTHER_ESCAPES, "z": r"\z", "Z": r"\z"}
ONLY_OUTSIDE = frozenset("bBAzZ123456789")
# Written as characters, because not every engine knows all escapes.
HORIZONTAL_SPACE = " \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000"
VERTICAL_SPACE = "\n\x0b\f\r\x85\u2028\u2029"
SPACES = {"h": HORIZONTAL_SPACE, "v": VERTICAL_SPACE, "s": " \t\n\x0b\f\r"}
COUNT = re.compile(r"\{[0-9]+(,[0-9]*)?\}")
FLAGS = re.compile(r"\(\?([a-zA-Z]*)(-[a-zA-Z]+)?([:)])")
GROUP_NAME = re.compile(r"\(\?<([a-zA-Z][a-zA-Z0-9]*)>")
KNOWN_FLAGS = frozenset("ims")
MOST_FLAGS = 10  # each is repeated for every alternative
SAME_GROUPS = ("(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!")


def compile_patterns(patterns: Sequence[str]) -> NamePattern | None:
    """One expression for names that any element matches as a whole; None for an empty list.

    Raises:
        BadValue: an element is not a Java expression, or Python cannot represent it.
    """
    if not patterns:
        return None
    try:
        return _compile("|".join(patterns))
    except BadValue as joined:
        raise _blame(patterns, joined) from None


def compile_part(pattern: str) -> NamePattern:
    """An expression for names that contain a match of `pattern`. Raises BadValue."""
    return _compile(pattern, "(?s:.*)")


def _compile(pattern: str, around: str = "") -> NamePattern:
    translator = _Translator(pattern)
    python = rf"\A{around}(?:{translator.run()}){around}\Z"
    try:
        re.compile(python, re.ASCII)
    except re.error as error:
        raise BadValue(f"not a regular expression: {error.msg}") from None
    except (OverflowError, RecursionError):
        raise BadValue("too large for a regular expression") from None
    # RE2 folds case beyond ASCII: a Kelvin sign in the expression would match a k.
    is_ascii = pattern.isascii() and "\\x" not in pattern and "\\u" not in pattern
    linear = _linear(pattern) if is_ascii or not translator.folds else None
    whole = None if linear is None else rf"\A{around}(?:{linear}){around}\z"
    return NamePattern(pattern, python, whole, translator.folds)


def _linear(pattern: str) -> str | None:
    """RE2's spelling of a valid expression; None if RE2 certainly has none."""
    try:
        return _Translator(pattern, linear=True).run()
    except BadValue:
        return None


def _blame(patterns: Sequence[str], joined: BadValue) -> BadValue:
    """The error of the first element that is invalid by itself, else that of the whole list."""
    for pattern in patterns:
        try:
            _compile(pattern)
        except BadValue as bad:
            return BadValue(f"{bad.reason} (in '{pattern}')", bad.remedy or _hint(pattern))
    return joined


def _hint(pattern: str) -> str:
    if pattern.startswith("*"):
        return f"these are regular expressions, not file globs: write .{pattern}"
    return "correct the expression, or escape special characters with a backslash"


class _Translator:
    """Translates a Java expression to Python's spelling, from left to right.

    `wrappers` has, for each open group, the flag groups that a Java `(?i)` left open in it: in
    Python a flag cannot start in the middle, so `(?i:...)` encloses the rest of each alternative.
    """

    def __init__(self, pattern: str, *, linear: bool = False) -> None:
        """`linear`: for RE2, which itself rejects most of what it does not support."""
        self.pattern = pattern
        self.linear = linear
        # Whether case is ignored anywhere.
        self.folds = False
        self.at = 0
        self.out: list[str] = []
        self.wrappers: list[list[str]] = [[]]

    def run(self) -> str:
        while self.at < len(self.pattern):
            self._token()
        if len(self.wrappers) > 1:
            raise BadValue("a ( is not closed")
        self.out.append(")" * len(self.wrappers[0]))
        return "".join(self.out)

    def _token(self) -> None:
        char = self.pattern[self.at]
        handler = {
            "\\": self._escape,
            "[": self._brackets,
            "(": self._open,
            ")": self._close,
            "|": self._alternative,
            "{": self._count,
        }.get(char)
        if handler is None:
            self._emit(char, 1)
        else:
            handler()

    def _emit(self, text: str, consumed: int) -> None:
        self.out.append(text)
        self.at += consumed

    def _rest(self) -> str:
        return self.pattern[self.at :]

    def _open(self) -> None:
        rest = self._rest()
        name, flags = GROUP_NAME.match(rest), FLAGS.match(rest)
        if not rest.startswith("(?"):
            self._begin_group("(", 1)
        elif name:
            self._begin_group(f"(?P<{name[1]}>", name.end())
        elif same := next((text for text in SAME_GROUPS if rest.startswith(text)), None):
            self._begin_group(same, len(same))
        elif flags:
            self._flags(flags)
        else:
            raise BadValue(f"unknown group {rest[:3]}...")

    def _begin_group(self, text: str, consumed: int) -> None:
        self._emit(text, consumed)
        self.wrappers.append([])

    def _flags(self, found: re.Match[str]) -> None:
        on, off, end = found[1], found[2] or "", found[3]
        if unknown := set(on + off[1:]) - KNOWN_FLAGS:
            flag = min(unknown)
            raise BadValue(f"the flag {flag} is not supported", "only i, m and s are")
        self.folds = self.folds or "i" in on
        text = f"(?{on}{off}:"
        if end == ":":
            self._begin_group(text, found.end())
        elif len(self.wrappers[-1]) < MOST_FLAGS:
            self.wrappers[-1].append(text)
            self._emit(text, found.end())
        else:
            raise BadValue(f"has more than {MOST_FLAGS} groups of flags such as (?i)")

    def _close(self) -> None:
        if len(self.wrappers) == 1:
            raise BadValue("a ) has no (")
        self._emit(")" * (len(self.wrappers.pop()) + 1), 1)

    def _alternative(self) -> None:
        wrappers = self.wrappers[-1]
        self._emit(")" * len(wrappers) + "|" + "".join(wrappers), 1)

    def _count(self) -> None:
        found = COUNT.match(self._rest())
        if not found:
            raise BadValue("a { that is no count such as {2}", r"write \{ for the character itself")
        self._emit(found[0], found.end())

    def _escape(self) -> None:
        text, consumed = self._escaped(inside=False)
        self._emit(text, consumed)

    def _escaped(self, inside: bool) -> tuple[str, int]:
        """Python's spelling of the escape at this position, and the length of Java's."""
        rest = self._rest()
        char = rest[1:2]
        if not char:
            raise BadValue("ends with a backslash")
        if inside and char in ONLY_OUTSIDE:
            raise BadValue(f"\\{char} means nothing inside [ ]")
        if char == "Q":
            return self._quoted(rest)
        if char in "pP":
            letters = LINEAR_LETTERS if self.linear else PYTHON_LETTERS
            return _property_class(rest, inside, letters)
        # RE2's \s lacks the vertical tab.
        if char in "hHvV" or (self.linear and char in "sS"):
            return _space_class(char, inside), 2
        if char in "xu":
            return _code_point(rest, "\\x{{{:x}}}" if self.linear else "\\U{:08x}")
        if char == "k":
            return _back_reference(rest)
        return _simple_escape(char, LINEAR_ESCAPES if self.linear else OTHER_ESCAPES), 2

    def _quoted(self, rest: str) -> tuple[str, int]:
        end = rest.find("\\E", 2)
        text = rest[2:] if end < 0 else rest[2:end]
        return re.escape(text), len(rest) if end < 0 else end + 2

    def _brackets(self) -> None:
        negated = self.pattern.startswith("[^", self.at)
        self._emit("[^" if negated else "[", 2 if negated else 1)
        first = True
        while self.at < len(self.pattern):
            char = self.pattern[self.at]
            if char == "]" and not first:
                self._emit("]", 1)
                return
            self._member(char)
            first = False
        raise BadValue("a [ is not closed")

    def _member(self, char: str) -> None:
        if char == "[" or self.pattern.startswith("&&", self.at):
            remedy = r"list the characters, or write \[ for the character itself"
            raise BadValue("sets of sets ([a[b]] and &&) are not supported", remedy)
        if char == "\\":
            text, consumed = self._escaped(inside=True)
            self._emit(text, consumed)
        elif char in "|&~]" or (char == "-" and self.out[-1] == "-"):
            self._emit(f"\\{char}", 1)
        else:
            self._emit(char, 1)


def _simple_escape(char: str, others: Mapping[str, str]) -> str:
    if char in SAME_IN_BOTH:
        return f"\\{char}"
    if char in others:
        return others[char]
    if char.isascii() and char.isalnum():
        raise BadValue(f"the escape \\{char} is not supported")
    return re.escape(char)


def _space_class(char: str, inside: bool) -> str:
    members = SPACES[char.lower()]
    return _set_of(members, negated=char.isupper(), inside=inside, name=f"\\{char}")


def _set_of(members: str, negated: bool, inside: bool, name: str) -> str:
    if negated and inside:
        raise BadValue(f"{name} inside [ ] is not supported", "list the characters")
    if inside:
        return members
    return f"[^{members}]" if negated else f"[{members}]"


def _property_class(rest: str, inside: bool, letters: str) -> tuple[str, int]:
    found = re.match(r"\\[pP](?:\{([A-Za-z0-9_=]+)\}|([A-Z]))", rest)
    if not found:
        raise BadValue(r"\p without a class name", r"write it as in \p{Alpha}")
    name = found[1] or found[2]
    negated = rest[1] == "P"
    if name in POSIX:
        return _set_of(POSIX[name], negated, inside, found[0]), found.end()
    if name in LETTERS and not inside and not negated:
        return letters, found.end()
    known = ", ".join(sorted(POSIX))
    raise BadValue(f"{found[0]} is not supported here", f"list the characters, or use {known}")


def _code_point(rest: str, spelling: str) -> tuple[str, int]:
    found = re.match(r"\\x([0-9a-fA-F]{2})|\\u([0-9a-fA-F]{4})|\\x\{([0-9a-fA-F]{1,6})\}", rest)
    if not found or int(found[1] or found[2] or found[3], 16) > 0x10FFFF:
        raise BadValue(f"{rest[:2]} without a code point", r"write \xhh or \uhhhh")
    return spelling.format(int(found[1] or found[2] or found[3], 16)), found.end()


def _back_reference(rest: str) -> tuple[str, int]:
    found = re.match(r"\\k<([a-zA-Z][a-zA-Z0-9]*)>", rest)
    if not found:
        raise BadValue(r"\k without a group name")
    return f"(?P={found[1]})", found.end()
