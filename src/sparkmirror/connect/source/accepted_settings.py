"""Topic settings of a flow as its target accepts them; its errors show what it rejects.

Runs on: worker, on the connector's thread. The rules are in mirror/refused_settings.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from sparkmirror.errors import BrokerError
from sparkmirror.mirror.config_sync import AlterConfig, AlterOperation
from sparkmirror.mirror.refused_settings import find_substitute
from sparkmirror.types import FlowName
from sparkmirror.wire.protocol.error_codes import INVALID_CONFIG, INVALID_REQUEST

log = logging.getLogger(__name__)

# ZooKeeper brokers return INVALID_REQUEST where others return INVALID_CONFIG.
REFUSALS = (INVALID_CONFIG, INVALID_REQUEST)


class AcceptedSettings:
    """Remembers, until the next start, what the target rejected and what it gets instead.

    A value that was rejected for one topic is omitted for all, as is every value of a setting that
    the target does not know; each is logged once.
    """

    def __init__(self, flow: FlowName, target_alias: str) -> None:
        self._name = str(flow)
        self._target = target_alias
        self._substitutes: dict[tuple[str, str | None], str | None] = {}
        # Settings that the target does not know, whatever their value.
        self._unknown: set[str] = set()

    def learn(self, topic: str, settings: Mapping[str, str], error: BrokerError) -> bool:
        """Return whether the error names a setting that can be omitted or changed: then retry."""
        found = find_substitute(settings, str(error)) if error.code in REFUSALS else None
        if found is None:
            return False
        is_known = (found.name, found.refused) in self._substitutes
        if is_known or found.name in self._unknown:
            return True  # learned from another topic of the same request
        if (found.name, found.value) in self._substitutes:
            return False  # the target has rejected the substitute, too
        if found.is_unknown:
            self._unknown.add(found.name)
        else:
            self._substitutes[found.name, found.refused] = found.value
        instead = "leave it out" if found.value is None else f"set {found.value} instead"
        log.warning(
            "[%s] '%s' does not accept %s=%s, first met for topic '%s': topics there get all their "
            "other settings, and we %s (%s)",
            self._name,
            self._target,
            found.name,
            found.refused,
            topic,
            instead,
            error,
        )
        return True

    def of_topic(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Settings for a new topic."""
        accepted = {name: self._accepted(name, value) for name, value in settings.items()}
        return {name: value for name, value in accepted.items() if value is not None}

    def of_changes(self, changes: Iterable[AlterConfig]) -> tuple[AlterConfig, ...]:
        """Changes of a topic's settings; a setting whose change is omitted stays as it is."""
        accepted = (self._change(change) for change in changes)
        return tuple(change for change in accepted if change is not None)

    def _change(self, change: AlterConfig) -> AlterConfig | None:
        if change.operation is AlterOperation.DELETE or change.value is None:
            return change
        value = self._accepted(change.name, change.value)
        return None if value is None else change._replace(value=value)

    def _accepted(self, name: str, value: str) -> str | None:
        found: str | None = None if name in self._unknown else value
        while (name, found) in self._substitutes:
            found = self._substitutes[name, found]
        return found
