"""Warnings of jobs that run again and again: each is said once, until it changes.

Runs on: worker.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from sparkmirror.events import EventKind, event

log = logging.getLogger(__name__)


class WarnOnce:
    """What was wrong in the last round, by subject; for one thread."""

    def __init__(self, name: str, kind: EventKind | None = None) -> None:
        """With a `kind`, warnings are events; then `name` is a flow."""
        self._name = name
        self._kind = kind
        self._said: dict[str, str] = {}

    def report(self, wrong: Mapping[str, str]) -> None:
        """Warn of what is new since the last round; what is not in `wrong` is fine again."""
        for subject, text in wrong.items():
            if self._said.get(subject) != text:
                mark = None if self._kind is None else event(self._kind, flow=self._name)
                log.warning("[%s] %s", self._name, text, extra=mark)
        self._said = dict(wrong)
