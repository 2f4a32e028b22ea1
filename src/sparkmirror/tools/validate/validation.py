"""Reads a file as `run` and `worker` do, and collects what they would reject or warn of.

Runs on: any machine; no cluster is asked. An error keeps `run` from starting; a warning is about
what works otherwise than it looks, most of all keys that MirrorMaker 2 drops without a word.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from sparkmirror.config.checks.advice import UNKNOWN
from sparkmirror.config.connector_spec import KINDS, ConnectorConfig, collect_connector
from sparkmirror.config.expansion import CLUSTERS
from sparkmirror.config.files.properties import find_duplicates, load_entries
from sparkmirror.config.findings import Findings
from sparkmirror.config.keys.plugins import CONNECTOR_CLASS, connector_class
from sparkmirror.config.mirror_configs import CheckpointConfig, SourceConfig
from sparkmirror.config.mm2 import MirrorMakerConfig, parse_mm2
from sparkmirror.config.worker.worker_file import WorkerFile, load_worker, parse_worker_file
from sparkmirror.connect.start_checks import POLICY_KEY, policy_problem
from sparkmirror.errors import ConfigError, ConfigErrors, MirrorError
from sparkmirror.foreign_json import read_json_object
from sparkmirror.mirror.filters import (
    make_config_property_filter,
    make_group_filter,
    make_topic_filter,
)
from sparkmirror.mirror.policy import flow_policy
from sparkmirror.tools.check.checked_file import (
    NO_WORKER,
    assumed_worker,
    connectors_beside,
    load_json_settings,
)
from sparkmirror.tools.validate.line_numbers import Remark, json_keys, repeated, traps

ARROW = "->"
JSON_LINE = re.compile(r"line (\d+) column")
MM2, WORKER, CONNECTOR = "mm2 file", "worker file", "connector"


class Severity(StrEnum):
    """`NOTE`: for the reader only, never a problem."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class FileProblem:
    """One thing to correct; `line` is 0 if it is on none, such as a key that is missing."""

    severity: Severity
    line: int
    key: str
    text: str

    def as_json(self) -> dict[str, Any]:
        return {
            "severity": self.severity.value,
            "line": self.line or None,
            "key": self.key or None,
            "text": self.text,
        }


@dataclass(frozen=True, slots=True)
class FileReport:
    """Everything about one file, in the order of its lines."""

    path: Path
    kind: str
    problems: tuple[FileProblem, ...]

    def count(self, severity: Severity) -> int:
        """How many there are."""
        return sum(1 for each in self.problems if each.severity is severity)

    def is_ok(self, *, strict: bool = False) -> bool:
        """Whether the file can be used; `strict`: and nothing works otherwise than it looks."""
        worst = self.count(Severity.ERROR) + (self.count(Severity.WARNING) if strict else 0)
        return worst == 0

    def as_json(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "file": str(self.path),
            "kind": self.kind,
            "ok": self.is_ok(),
            "errors": self.count(Severity.ERROR),
            "warnings": self.count(Severity.WARNING),
            "problems": [each.as_json() for each in self.problems],
        }


def validate_file(path: Path, worker: Path | None = None) -> FileReport:
    """All problems of an mm2 file, a worker's file or a connector's settings, at once.

    `worker` is the file of the connector's worker.

    Raises:
        ConfigErrors: the worker's file is wrong.
    """
    book = _Book(path)
    own = None if worker is None else load_worker(worker)
    try:
        kind = _read(path, own, book)
    except ConfigErrors as errors:
        kind = ""
        book.add_errors(errors.errors)
    except ConfigError as error:
        kind = ""
        book.add_errors([error])
    except MirrorError as error:
        kind = ""
        book.add_errors([ConfigError("", None, str(error))])
    return FileReport(path, kind or "unreadable", book.in_order())


def _read(path: Path, worker: WorkerFile | None, book: _Book) -> str:
    if path.suffix == ".json":
        text, _ = read_json_object(path)
        keys = list(json_keys(text))
        book.place((key, line) for key, line, _ in keys)
        book.reject(repeated(keys))
        _connector(load_json_settings(path), worker, book)
        return CONNECTOR
    entries = load_entries(path)
    book.place((key, line) for key, _, line in entries)
    book.add_errors(find_duplicates(path, entries))
    book.warn(traps(entries))
    values = {entry.key: entry.value for entry in entries}
    if CONNECTOR_CLASS in values:
        _connector(values, worker, book)
        return CONNECTOR
    # A file without `clusters` may still be meant for MirrorMaker 2.
    is_mm2 = CLUSTERS in values or any(ARROW in key for key in values)
    if worker is not None:
        reason = "only a connector's settings need a worker's file"
        book.add_errors([ConfigError("--worker", None, reason, "remove the option")])
    with book.findings() as findings:
        if is_mm2:
            _check_classes(parse_mm2(values, path, str(path), findings=findings), book)
        else:
            parse_worker_file(values, path, findings)
    return MM2 if is_mm2 else WORKER


def _connector(props: Mapping[str, str | None], worker: WorkerFile | None, book: _Book) -> None:
    own = worker or assumed_worker(props)
    if worker is None:
        book.note(NO_WORKER)
    given = props.get(CONNECTOR_CLASS)
    if given is None or connector_class(given) is None:
        known = ", ".join(KINDS)
        error = ConfigError(CONNECTOR_CLASS, given, "no connector of MirrorMaker 2", f"use {known}")
        book.add_errors([error])
        return
    with book.findings() as findings:
        config = collect_connector(props, own, findings).config
        findings.raise_errors()
        for error in _unusable_classes(config):
            book.add_errors([error])
        problem = policy_problem(config, connectors_beside(book.path, own))
        if problem:
            book.add_errors([ConfigError(POLICY_KEY, None, problem)])


def _check_classes(config: MirrorMakerConfig, book: _Book) -> None:
    """Classes of the user's own are loaded when a flow starts."""
    names = {pair.name: pair.worker.connector_names for pair in config.pairs}
    for flow in config.flows:
        for each in (flow.source, flow.checkpoint):
            spelled = names[flow.name].get(each.name, {})
            book.add_errors(
                ConfigError(spelled.get(e.key, e.key), e.value, e.reason, e.remedy, e.where)
                for e in _unusable_classes(each)
            )


def _unusable_classes(config: ConnectorConfig) -> Iterator[ConfigError]:
    makers: list[Callable[[], object]] = [lambda: flow_policy(config)]
    if isinstance(config, SourceConfig):
        makers += [lambda: make_topic_filter(config), lambda: make_config_property_filter(config)]
    if isinstance(config, CheckpointConfig):
        makers += [lambda: make_topic_filter(config), lambda: make_group_filter(config)]
    for make in makers:
        try:
            make()
        except ConfigError as error:
            yield error


class _Book:
    """What was found so far, each thing once; a context around the parsers of `config`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: dict[str, int] = {}
        self._trapped: set[str] = set()
        self._found: dict[FileProblem, None] = {}
        self._findings = Findings(str(path))

    def place(self, lines: Iterable[tuple[str, int]]) -> None:
        """Where keys are; of repeated ones the last counts."""
        self._lines = dict(lines)

    def findings(self) -> _Book:
        """For a parser; what it found is in the book when the context ends, also by an error."""
        return self

    def __enter__(self) -> Findings:
        return self._findings

    def __exit__(self, kind: object, error: object, trace: object) -> bool:
        self.add_errors(self._findings.errors)
        for text, key in self._findings.warned:
            if not self._is_said(key, text):
                self._add(Severity.WARNING, key, text)
        return isinstance(error, ConfigErrors)

    def add_errors(self, errors: Iterable[ConfigError]) -> None:
        """Errors of this file."""
        for error in errors:
            plain = ConfigError(error.key, error.value, error.reason, error.remedy)
            place = JSON_LINE.search(error.reason) if not error.key else None
            line = int(place[1]) if place else 0
            self._add(Severity.ERROR, error.key, str(plain), line)

    def reject(self, remarks: Iterable[Remark]) -> None:
        """Remarks that are errors."""
        for key, line, text in remarks:
            self._add(Severity.ERROR, key, f"{key}: {text}", line)

    def warn(self, remarks: Iterable[Remark]) -> None:
        """Remarks that are warnings: traps."""
        for key, line, text in remarks:
            self._trapped.add(key)
            self._add(Severity.WARNING, key, f"{key}: {text}", line)

    def note(self, text: str) -> None:
        """What the reader should know."""
        self._add(Severity.NOTE, "", text)

    def in_order(self) -> tuple[FileProblem, ...]:
        """By line; what is on none comes last."""
        return tuple(sorted(self._found, key=lambda each: each.line or sys.maxsize))

    def _is_said(self, key: str, text: str) -> bool:
        """Whether a trap says the same with other words: about quotes, or a key cut short."""
        return key in self._trapped and ("quotes are" in text or UNKNOWN in text)

    def _add(self, severity: Severity, key: str, text: str, line: int = 0) -> None:
        found = FileProblem(severity, line or self._lines.get(key, 0), key, text)
        self._found.setdefault(found)
