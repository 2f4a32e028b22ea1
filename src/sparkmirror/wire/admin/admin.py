"""Administration of one cluster, through kafka-python: topics, their settings, their ACLs.

Runs on: worker, on any thread; every call blocks for at most the admin timeout.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from kafka.protocol.metadata import MetadataRequest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import BrokerError, KafkaError
from sparkmirror.events import EventKind, event
from sparkmirror.mirror.admin_types import AclRule, ConfigChange, NewTopic
from sparkmirror.mirror.permissions import Operation, Permission, topic_permission
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.acl_admin import AclAdmin
from sparkmirror.wire.admin.admin_client import in_parts
from sparkmirror.wire.admin.config_admin import ConfigAdmin, TopicSetting
from sparkmirror.wire.client.reachability import check_reachable
from sparkmirror.wire.fetch.log_ranges import Ranges, fetch_ranges
from sparkmirror.wire.protocol.error_codes import error_code

__all__ = [
    "AclRule",
    "Admin",
    "ConfigChange",
    "NewTopic",
    "TopicSetting",
    "TopicView",
    "check_reachable",
    "open_admins",
]


log = logging.getLogger(__name__)


class TopicView(NamedTuple):
    """A topic as metadata shows it."""

    partitions: int
    topic_id: bytes


class Admin(ConfigAdmin, AclAdmin):
    """Admin requests to one cluster."""

    def list_topics(self) -> dict[str, TopicView]:
        """All topics that are not Kafka's own, with their partition counts."""
        return self._view_topics(None)

    def view_topic(self, name: str) -> TopicView | None:
        """The same of one topic, if it is there: of thousands, the others are not asked about."""
        return self._view_topics(
            [MetadataRequest.MetadataRequestTopic(topic_id=None, name=name)]
        ).get(name)

    def _view_topics(self, rows: list[Any] | None) -> dict[str, TopicView]:
        request = MetadataRequest(topics=rows, allow_auto_topic_creation=False)
        return {
            row.name: TopicView(len(row.partitions), _id_bytes(row.topic_id))
            for row in self._send("list topics", request).topics
            if not row.error_code and not row.is_internal
        }

    def log_ranges(self, partitions: Iterable[TopicPartition], seconds: float) -> Ranges:
        """Where each partition's log starts and ends, or why that is not known in time."""
        return fetch_ranges(self._config, partitions, seconds)

    def find_topics(self, names: Iterable[str]) -> dict[str, BrokerError | None]:
        """For each topic None if it exists, or the reason why it cannot be seen.

        Unlike `list_topics` this reports topics that we may not describe.
        """
        found: dict[str, BrokerError | None] = {}
        for part in in_parts(list(names)):
            rows = [MetadataRequest.MetadataRequestTopic(topic_id=None, name=name) for name in part]
            request = MetadataRequest(topics=rows, allow_auto_topic_creation=False)
            for row in self._send("find topics", request).topics:
                found[row.name] = self._not_found(row.name, row.error_code)
        return found

    def _not_found(self, topic: str, code: int) -> BrokerError | None:
        if not code:
            return None
        needed = topic_permission(Operation.DESCRIBE, topic)
        return self._error(f"find topic '{topic}'", code, needed)

    def ask_for_topics(self, names: Iterable[str]) -> None:
        """Ask as a writer does: brokers with auto.create.topics.enable create what is missing."""
        for part in in_parts(list(names)):
            rows = [MetadataRequest.MetadataRequestTopic(topic_id=None, name=name) for name in part]
            request = MetadataRequest(topics=rows, allow_auto_topic_creation=True)
            self._send("ask for topics", request)

    def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False
    ) -> dict[str, BrokerError | None]:
        """Create; each topic's error, None where it was created (or was there already).

        `validate_only`: the cluster checks everything, and creates nothing.
        """
        wanted: dict[str, dict[str, Any]] = {
            topic.name: {
                "num_partitions": topic.partitions,
                "replication_factor": topic.replication_factor,
                "configs": dict(topic.configs),
            }
            for topic in topics
        }
        outcome: dict[str, BrokerError | None] = {}
        for part in in_parts(list(wanted), lambda name: wanted[name]["num_partitions"]):
            with self._during("create topics"):
                response = self._client.create_topics(
                    {name: wanted[name] for name in part},
                    timeout_ms=self._timeout_ms,
                    validate_only=validate_only,
                    raise_errors=False,
                )
            for row in response["topics"]:
                what = f"create topic '{row['name']}'"
                needed = topic_permission(Operation.CREATE, row["name"])
                outcome[row["name"]] = self._outcome(what, row, "TOPIC_ALREADY_EXISTS", needed)
                # Others may have been faster.
                if row["error_code"] == 0 and not validate_only:
                    mark = event(EventKind.CREATED, topic=row["name"], cluster=self.alias)
                    log.info("created topic '%s' on '%s'", row["name"], self.alias, extra=mark)
        return outcome

    def create_partitions(
        self, counts: Mapping[str, int], *, validate_only: bool = False
    ) -> dict[str, BrokerError | None]:
        """Grow topics to these counts; each topic's error, None where it has them now.

        `validate_only`: the cluster only checks whether it would.
        """
        outcome: dict[str, BrokerError | None] = {}
        for part in in_parts(list(counts), counts.__getitem__):
            with self._during("create partitions"):
                response = self._client.create_partitions(
                    {name: counts[name] for name in part},
                    timeout_ms=self._timeout_ms,
                    validate_only=validate_only,
                    raise_errors=False,
                )
            for row in response.to_dict()["results"]:
                what = f"grow topic '{row['name']}'"
                needed = topic_permission(Operation.ALTER, row["name"])
                outcome[row["name"]] = self._outcome(what, row, "INVALID_PARTITIONS", needed)
        return outcome

    def _outcome(
        self, what: str, row: Mapping[str, Any], fine: str, needed: Permission
    ) -> BrokerError | None:
        code = row["error_code"]
        if code == 0 or error_code(code).name == fine:
            return None
        return self._error(what, code, needed, detail=row.get("error_message"))


def _id_bytes(value: Any) -> bytes:
    """The 16 bytes of a topic id, which kafka-python gives as a text or a UUID.

    Empty if there is none: brokers before 2.8 send no id, or zeros.
    """
    return uuid.UUID(str(value)).bytes if value and str(value) != str(NO_ID) else b""


NO_ID = uuid.UUID(int=0)
AnyAdmin = TypeVar("AnyAdmin", bound=Admin)


def open_admins(
    kind: type[AnyAdmin],
    clients: Iterable[ClientConfig],
    timeout_ms: int,
    opened: list[AnyAdmin],
) -> None:
    """Connect to all these clusters; those that opened are in `opened`, also after an error.

    Raises:
        KafkaError: for every cluster that cannot be reached, the reason.
    """
    errors = []
    for client in clients:
        try:
            opened.append(kind(client, timeout_ms))
        except KafkaError as error:
            errors.append(str(error))
    if errors:
        raise KafkaError("\n".join(errors))
