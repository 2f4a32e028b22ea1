"""What an explanation consists of: rules in the order in which they apply, and the key to change.

Runs on: any thread. Pure.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from sparkmirror.config.patterns.java_regex import compile_patterns
from sparkmirror.config.patterns.name_patterns import Matcher
from sparkmirror.types import FlowName

# Rules that depend on what the clusters have.
OF_CLUSTERS = frozenset({"source", "target"})
# In an expression these characters match themselves, or nearly: `.` matches any character.
PLAIN = re.compile(r"[A-Za-z0-9_.-]")


class RuleResult(StrEnum):
    """What a rule says; also the verdict of all rules together."""

    PASSES = "passes"
    STOPS = "stops"
    NOT_REACHED = "not reached"
    UNKNOWN = "unknown"
    """It depends on facts about a cluster that were not asked for."""


class RuleCheck(NamedTuple):
    """One rule: `rule` is its id, the key if it has one; `value` is what it looked at."""

    rule: str
    asks: str
    result: RuleResult
    value: str
    text: str

    def as_json(self) -> dict[str, str]:
        return {
            "rule": self.rule,
            "asks": self.asks,
            "result": self.result.value,
            "value": self.value,
            "text": self.text,
        }


class Change(NamedTuple):
    """The change of a file that lets a name pass the rule that stops it."""

    key: str
    line: str
    note: str = ""

    def as_json(self) -> dict[str, str]:
        return {"key": self.key, "line": self.line, "note": self.note}


@dataclass(frozen=True, slots=True)
class Explanation:
    """Of one topic or group of one flow. `target` is the remote topic's name, empty for a group."""

    kind: Literal["topic", "group"]
    name: str
    flow: FlowName
    rules: tuple[RuleCheck, ...]
    summary: str
    target: str = ""
    change: Change | None = None

    @property
    def stopped_by(self) -> RuleCheck | None:
        """The first rule that stops it."""
        return next((check for check in self.rules if check.result is RuleResult.STOPS), None)

    @property
    def verdict(self) -> RuleResult:
        """PASSES: the topic is mirrored, the group's offsets are written on the target."""
        if self.stopped_by is not None:
            return RuleResult.STOPS
        is_unknown = any(check.result is RuleResult.UNKNOWN for check in self.rules)
        return RuleResult.UNKNOWN if is_unknown else RuleResult.PASSES

    def as_json(self) -> dict[str, Any]:
        """For scripts and the page."""
        return {
            "kind": self.kind,
            "name": self.name,
            "source": self.flow.source,
            "target": self.flow.target,
            "verdict": self.verdict.value,
            "summary": self.summary,
            "remote_topic": self.target,
            "rules": [check.as_json() for check in self.rules],
            "change": self.change.as_json() if self.change else None,
        }


@dataclass(frozen=True, slots=True)
class Spelling:
    """How the user's file writes the settings of one connector.

    `prefix` stands before a key that the file does not set yet: `A->B.` in an mm2 file. `names` are
    those that it sets.
    """

    prefix: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    is_json: bool = False

    def key(self, name: str) -> str:
        """The key `name` as the file spells it."""
        return self.names.get(name) or f"{self.prefix}{name}"

    def change(self, name: str, value: str, note: str = "") -> Change:
        """Setting the key `name` to `value`."""
        key = self.key(name)
        if self.is_json:
            return Change(key, f"{json.dumps(key)}: {json.dumps(value)}", note)
        escaped = value.replace("\\", "\\\\")
        return Change(key, f"{key} = {escaped}".rstrip(), note)


def until_stopped(checks: Iterable[RuleCheck]) -> Iterator[RuleCheck]:
    """The same checks; what comes after the first that stops is not reached."""
    is_stopped = False
    for check in checks:
        if is_stopped:
            yield check._replace(result=RuleResult.NOT_REACHED, text="")
        else:
            yield check
        is_stopped = is_stopped or check.result is RuleResult.STOPS


def also_stopped(checks: Iterable[RuleCheck], change: Change | None) -> Change | None:
    """The change, with a word about the rule that would stop the name next."""
    # What is not there yet may come.
    later = [check for check in checks if check.rule not in OF_CLUSTERS]
    stops = [check for check in later if check.result is RuleResult.STOPS]
    if change is None or len(stops) < 2:
        return change
    note = f"{change.note}; " if change.note else ""
    return change._replace(note=f"{note}after that, this rule stops it: {stops[1].text}")


def with_name(patterns: Iterable[str], name: str) -> str:
    """The value of a list of expressions that also has `name`."""
    return ", ".join([*patterns, as_pattern(name)])


def without_matching(patterns: Iterable[str], name: str) -> str:
    """The value of a list of expressions without those that match `name`."""
    left = [each for each in patterns if each not in matching((each,), name)]
    return ", ".join(left)


def matching(patterns: Iterable[str], name: str) -> list[str]:
    """Those of the expressions that match `name` by themselves.

    Only for messages: a list is one expression, whose elements need not be valid alone.
    """
    found = []
    for each in patterns:
        matcher = _matcher(each)
        if matcher is not None and matcher.fullmatch(name) is not None:
            found.append(each)
    return found


@functools.lru_cache(maxsize=1024)
def _matcher(pattern: str) -> Matcher | None:
    """None for what is no expression alone."""
    try:
        return compile_patterns((pattern,))
    except ValueError:
        return None


def as_pattern(name: str) -> str:
    """An expression that matches `name`; one that a list's commas and trimming leave whole."""
    return "".join(char if PLAIN.fullmatch(char) else "." for char in name)


def listed(patterns: Iterable[str]) -> str:
    """The value of a list, as it is printed."""
    return ",".join(patterns)


def plural(count: int, noun: str) -> str:
    """`1 partition`, `2 partitions`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
