"""Warnings of jobs that run again and again: each is said once, until it changes.

Runs on: worker.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

log = logging.getLogger(__name__)


class WarnOnce:
    """What was wrong in the last round, by subject; for one thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._said: dict[str, str] = {}

    def report(self, wrong: Mapping[str, str]) -> None:
        """Warn of what is new since the last round; what is not in `wrong` is fine again."""
        for subject, text in wrong.items():
            if self._said.get(subject) != text:
                log.warning("[%s] %s", self._name, text)
        self._said = dict(wrong)
