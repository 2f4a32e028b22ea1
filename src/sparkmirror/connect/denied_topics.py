"""Finds topics to copy that the source does not list because we may not describe them.

Runs on: worker, on the connector's thread. A cluster omits topics from its list that we may not
describe, so they look absent; a request by name reveals the denial.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable

from sparkmirror.config.mirror_configs import SourceConfig
from sparkmirror.connect.naming import some_names
from sparkmirror.connect.warn_once import WarnOnce
from sparkmirror.errors import DeniedError, describe_error
from sparkmirror.mirror.filters import describe_topic_filter
from sparkmirror.mirror.permissions import READ, Feature, ResourceKind, consequence_without
from sparkmirror.wire.access import needing
from sparkmirror.wire.admin.admin import Admin
from sparkmirror.wire.principal import principal_of

PLAIN_NAME = re.compile(r"[\w.-]+", re.ASCII)


class DeniedTopics:
    """Reports which topics of one flow lack permissions and are not copied; one round is `look`."""

    def __init__(self, config: SourceConfig, wants: Callable[[str], bool], source: Admin) -> None:
        self._config = config
        self._wants = wants
        self._source = source
        self._complaints = WarnOnce(str(config.flow))

    def look(
        self,
        seen: Collection[str],
        gone: Iterable[str],
        shown: Collection[str] = (),
        cycles: Collection[str] = (),
    ) -> set[str]:
        """Compare the topics to copy that are `seen` with those that are `gone` since last time.

        `shown` are all topics that the source lists, including those that are not copied. The
        topic filter accepts `cycles`, but they come from the target.

        Returns:
            The topics that exist but that we may not describe.
        """
        named = filter(self._wants, plain_names(self._config.topics))
        missing = {*gone, *named} - set(seen)
        errors = self._source.find_topics(sorted(missing)) if missing else {}
        without = consequence_without(Feature.COPY, ResourceKind.COPIED, READ)
        wrong = {
            topic: describe_error(needing(error, READ), without)
            for topic, error in errors.items()
            if isinstance(error, DeniedError)
        }
        nothing = {} if seen or wrong else {"": self._nothing(bool(shown), cycles)}
        self._complaints.report(wrong | nothing)
        return set(wrong)

    def _nothing(self, has_any: bool, cycles: Collection[str]) -> str:
        """Why nothing is copied although no broker denied anything.

        Suggests no command: where `allow.everyone.if.no.acl.found` is true, the first ACL of a
        topic locks out everyone else.
        """
        client = self._config.source_client
        who = principal_of(client)
        if not has_any:
            return f"nothing to copy: '{client.alias}' lists no topics for {who}"
        lists = f"nothing to copy: of the topics that '{client.alias}' lists for {who}, the topic"
        if cycles:
            return (
                f"{lists} filter accepts only copies, which are not copied back: "
                f"{some_names(cycles)}"
            )
        return f"{lists} filter accepts none ({describe_topic_filter(self._config)})"


def plain_names(patterns: Iterable[str]) -> list[str]:
    """The patterns that are, or could be, the name of a single topic or group."""
    return [pattern for pattern in patterns if PLAIN_NAME.fullmatch(pattern)]
