"""Settings of topics, through kafka-python: described and altered, each topic with its own outcome.

Runs on: worker. kafka-python's own methods drop the errors of single topics; its requests do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kafka.protocol.admin import (
    AlterConfigsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
)

from sparkmirror.errors import BrokerError
from sparkmirror.mirror.admin_types import ConfigChange
from sparkmirror.mirror.permissions import Operation, topic_permission
from sparkmirror.wire.admin.admin_client import AdminClient, in_parts

TOPIC, BROKER = 2, 4
# Operations of a ConfigChange, and DescribeConfigs' code of a topic's own settings.
SET, DELETE = 0, 1
OWN_SETTING = 1


class TopicSetting(NamedTuple):
    """One setting of a topic; `source` is DescribeConfigs' code."""

    name: str
    value: str | None
    source: int
    read_only: bool
    sensitive: bool


class ConfigAdmin(AdminClient):
    """Admin requests about the settings of topics."""

    def describe_topic_configs(
        self, topics: Iterable[str], keys: Sequence[str] | None = None
    ) -> dict[str, list[TopicSetting] | BrokerError]:
        """The settings of each topic, all or those of `keys`, or why they are not readable."""
        found: dict[str, list[TopicSetting] | BrokerError] = {}
        for part in in_parts(list(topics)):
            request = DescribeConfigsRequest(
                resources=[(TOPIC, topic, keys) for topic in part],
                include_synonyms=False,
                min_version=1,
            )
            for row in self._send("describe topic configs", request).results:
                found[row.resource_name] = self._settings(row)
        return found

    def describe_broker_configs(self) -> dict[str, str | None]:
        """The settings of one of the brokers; none if they may not be seen."""
        (broker, *_) = self._describe_cluster().brokers or (None,)
        if broker is None:
            return {}
        request = DescribeConfigsRequest(
            resources=[(BROKER, str(broker), None)], include_synonyms=False, min_version=1
        )
        (row,) = self._send("describe broker configs", request, node_id=broker).results
        return {} if row.error_code else {each.name: each.value for each in row.configs}

    def alter_topic_configs(
        self, changes: Mapping[str, Sequence[ConfigChange]], *, validate_only: bool = False
    ) -> dict[str, BrokerError | None]:
        """Make the changes, of each topic all or none; each topic's error.

        `validate_only`: the cluster only checks whether it would.
        """
        outcome: dict[str, BrokerError | None] = {}
        is_incremental = self._speaks(IncrementalAlterConfigsRequest)
        for part in in_parts(list(changes)):
            wanted = {topic: changes[topic] for topic in part}
            if is_incremental:
                request = IncrementalAlterConfigsRequest(
                    resources=[(TOPIC, topic, list(wanted[topic])) for topic in part],
                    validate_only=validate_only,
                )
            else:
                request = self._whole_configs(wanted, outcome, validate_only)
            for row in self._send("alter topic configs", request).responses:
                outcome[row.resource_name] = self._alteration(row)
        return outcome

    def _whole_configs(
        self,
        changes: Mapping[str, Sequence[ConfigChange]],
        outcome: dict[str, BrokerError | None],
        validate_only: bool,
    ) -> Any:
        """The same for brokers before 2.3 (KIP-339), which replace all settings of a topic at once.

        So the settings that stay are read first, and written again. A change that another client
        makes in between is lost: MirrorMaker 2 up to 3.9 takes the same risk.
        """
        resources = []
        for topic, found in self.describe_topic_configs(changes).items():
            if isinstance(found, BrokerError):
                outcome[topic] = found
                continue
            settings = {each.name: each.value for each in found if each.source == OWN_SETTING}
            for name, operation, value in changes[topic]:
                settings.pop(name, None)
                if operation == SET:
                    settings[name] = value
            resources.append((TOPIC, topic, list(settings.items())))
        return AlterConfigsRequest(resources=resources, validate_only=validate_only)

    def _settings(self, row: Any) -> list[TopicSetting] | BrokerError:
        if row.error_code:
            what = f"describe configs of topic '{row.resource_name}'"
            needed = topic_permission(Operation.DESCRIBE_CONFIGS, row.resource_name)
            return self._error(what, row.error_code, needed, detail=row.error_message)
        return [
            TopicSetting(
                each.name, each.value, each.config_source, each.read_only, each.is_sensitive
            )
            for each in row.configs
        ]

    def _alteration(self, row: Any) -> BrokerError | None:
        if not row.error_code:
            return None
        what = f"alter configs of topic '{row.resource_name}'"
        needed = topic_permission(Operation.ALTER_CONFIGS, row.resource_name)
        return self._error(what, row.error_code, needed, detail=row.error_message)
