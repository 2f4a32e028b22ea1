"""Which consumer groups of the source a flow follows, and the offsets they committed.

Runs on: worker, on the thread of the checkpoint connector or of its task.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from sparkmirror.config.mirror_configs import CheckpointConfig
from sparkmirror.connect.denied_topics import plain_names
from sparkmirror.connect.naming import some_names
from sparkmirror.errors import KafkaError, describe_error
from sparkmirror.mirror.checkpoints import CommittedOffset
from sparkmirror.mirror.filters import (
    GroupFilter,
    TopicFilter,
    describe_group_filter,
    describe_topic_filter,
    make_group_filter,
)
from sparkmirror.mirror.group_offsets import GroupListing, select_consuming, select_groups
from sparkmirror.mirror.permissions import DESCRIBE, Feature, ResourceKind, consequence_without
from sparkmirror.types import FlowName, TopicPartition
from sparkmirror.wire.admin import group_admin
from sparkmirror.wire.principal import principal_of

log = logging.getLogger(__name__)

Committed = Mapping[str, Mapping[TopicPartition, CommittedOffset]]


class SourceGroups(Protocol):
    """The part of the source's `GroupAdmin` that is used here."""

    def list_groups(self) -> list[group_admin.ListedGroup]:
        """All groups that the cluster lists for us."""

    def committed_offsets(
        self, group_ids: Iterable[str]
    ) -> Mapping[str, dict[TopicPartition, group_admin.GroupOffset] | KafkaError]:
        """All committed offsets of each group."""


class GroupDiscovery:
    """The groups of one flow. Owned by one thread."""

    def __init__(self, flow: FlowName, config: CheckpointConfig, topic_filter: TopicFilter) -> None:
        self.names: tuple[str, ...] = ()
        self.is_known = False
        self._flow = flow
        self._config = config
        self._group_filter: GroupFilter = make_group_filter(config)
        self._topic_filter = topic_filter
        self._logged_left_out = ""
        self._logged_none = ""

    def refresh(self, source: SourceGroups) -> None:
        """Find the groups to follow: those with offsets in topics of the flow.

        Raises:
            KafkaError: the source does not list its groups.
        """
        listings = [
            GroupListing(found.group_id, found.protocol_type, found.type)
            for found in source.list_groups()
        ]
        wanted = select_groups(listings, self._group_filter).groups
        # The cluster omits groups that we may not describe; a request by name reveals the denial.
        listed = {listing.group for listing in listings}
        hidden = [name for name in plain_names(self._config.groups) if name not in listed]
        committed, errors = self.committed(source, (*wanted, *hidden))
        consuming = select_consuming(committed, self._topic_filter)
        # A group whose offsets cannot be read now stays followed.
        kept = [group for group in self.names if group in errors]
        self._log_none(None if consuming.groups or errors else self._why_none(listed, wanted))
        self._follow((*consuming.groups, *kept))

    def committed(
        self, source: SourceGroups, groups: tuple[str, ...] | None = None
    ) -> tuple[Committed, dict[str, KafkaError]]:
        """The offsets that each group committed on the source, and the groups that failed."""
        committed: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        errors: dict[str, KafkaError] = {}
        asked = self.names if groups is None else groups
        for group, found in source.committed_offsets(asked).items():
            if isinstance(found, KafkaError):
                errors[group] = found
            else:
                committed[group] = {tp: CommittedOffset(*offset) for tp, offset in found.items()}
        self._log_left_out(errors)
        return committed, errors

    def _follow(self, groups: tuple[str, ...]) -> None:
        new, gone = set(groups) - set(self.names), set(self.names) - set(groups)
        if new:
            log.info("[%s] follows %d more groups: %s", self._flow, len(new), some_names(new))
        if gone:
            log.info("[%s] %d groups are gone: %s", self._flow, len(gone), some_names(gone))
        self.names = groups
        self.is_known = True

    def _log_left_out(self, errors: Mapping[str, KafkaError]) -> None:
        text = f"{some_names(set(errors))}: {_why(next(iter(errors.values())))}" if errors else ""
        if text and text != self._logged_left_out:
            log.warning("[%s] %d groups are left out, %s", self._flow, len(errors), text)
        self._logged_left_out = text

    def _why_none(self, listed: Collection[str], wanted: Collection[str]) -> str:
        """Why no group is followed although no broker denied anything.

        The cluster may have omitted groups that we may not describe. Still suggests no command:
        where `allow.everyone.if.no.acl.found` is true, the first ACL of a group locks out everyone
        else.
        """
        client, config = self._config.source_client, self._config
        who = principal_of(client)
        if not listed:
            return f"'{client.alias}' lists no groups for {who}"
        lists = f"of the groups that '{client.alias}' lists for {who}"
        if not wanted:
            return f"{lists}, the group filter accepts none ({describe_group_filter(config)})"
        return (
            f"{lists} and the group filter accepts, none has committed an offset in a topic that "
            f"the topic filter accepts ({describe_topic_filter(config)})"
        )

    def _log_none(self, why: str | None) -> None:
        if why is not None and why != self._logged_none:
            log.info("[%s] no groups to follow: %s", self._flow, why)
        self._logged_none = why or ""


def _why(error: KafkaError) -> str:
    """Why a group's offsets cannot be read; after a denial, with the consequence."""
    return describe_error(
        error, if_denied=consequence_without(Feature.CHECKPOINTS, ResourceKind.GROUPS, DESCRIBE)
    )
