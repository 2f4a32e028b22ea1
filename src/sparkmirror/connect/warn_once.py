"""Warnings of periodic jobs: each is logged once, and again when it changes.

Runs on: worker.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from sparkmirror.events import EventKind, event

log = logging.getLogger(__name__)


class WarnOnce:
    """The warnings of the last round, by subject; for one thread."""

    def __init__(self, name: str, kind: EventKind | None = None) -> None:
        """With a `kind`, warnings are events; then `name` is a flow."""
        self._name = name
        self._kind = kind
        self._last: dict[str, str] = {}

    def report(self, wrong: Mapping[str, str]) -> None:
        """Log what is new since the last round; subjects missing from `wrong` are fine again."""
        for subject, text in wrong.items():
            if self._last.get(subject) != text:
                mark = None if self._kind is None else event(self._kind, flow=self._name)
                log.warning("[%s] %s", self._name, text, extra=mark)
        self._last = dict(wrong)
