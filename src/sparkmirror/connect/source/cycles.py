"""Topics that are not copied because their names look like those of copies.

Runs on: worker, on the connector's thread. MirrorMaker 2 omits them without a log line, even a
topic of the source's own whose name only looks like a copy: `backup.orders` in a flow to `backup`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from sparkmirror.config.mirror_configs import SourceConfig
from sparkmirror.connect.denied_topics import plain_names
from sparkmirror.connect.naming import some_names
from sparkmirror.mirror.filters import TopicFilter
from sparkmirror.mirror.policy import ReplicationPolicy
from sparkmirror.mirror.topics import is_cycle

log = logging.getLogger(__name__)


class Cycles:
    """Logs the topics of one flow that are omitted as cycles; one round is `look`."""

    def __init__(
        self, config: SourceConfig, topic_filter: TopicFilter, policy: ReplicationPolicy
    ) -> None:
        self._config = config
        self._filter = topic_filter
        self._policy = policy
        # A user has named these topics, so omitting them deserves a warning.
        self._named = set(plain_names(config.topics))
        self._logged: set[str] = set()

    def look(self, topics: Iterable[str]) -> set[str]:
        """Return the source's `topics` that are omitted as cycles; log each of them once."""
        found = {topic for topic in topics if self._is_left_out(topic)}
        new, self._logged = found - self._logged, found
        for level, names in (
            (logging.WARNING, new & self._named),
            (logging.INFO, new - self._named),
        ):
            if names:
                log.log(level, "[%s] %s", self._config.flow, self._text(names))
        return found

    def _text(self, names: set[str]) -> str:
        source, target = self._config.flow.source, self._config.flow.target
        return (
            "not copied, because their names begin with an alias and so say that they are copies "
            f"from '{target}' or '{source}' already: {some_names(names)}; if they are not, "
            "use other aliases, another replication.policy.separator or IdentityReplicationPolicy"
        )

    def _is_left_out(self, topic: str) -> bool:
        aliases = self._config.source_alias, self._config.target_alias
        return (
            self._filter.should_replicate_topic(topic)
            and not self._policy.is_internal_topic(topic)
            and not self._policy.is_heartbeats_topic(topic)
            and is_cycle(topic, self._policy, *aliases)
        )
