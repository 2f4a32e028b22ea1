"""Sends the changes of a connector through the class that `forwarding.admin.class` names.

Runs on: worker. Reads (topics, settings, groups) go to the cluster itself. KIP-787.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast

from sparkmirror.config.keys.classes import FORWARDING_ADMIN
from sparkmirror.config.keys.connector_keys import COMMON_KEYS
from sparkmirror.errors import BrokerError, ConfigError, KafkaError, MirrorError
from sparkmirror.mirror.forwarding_admin import AclRule, ConfigChange, ForwardingAdmin, NewTopic
from sparkmirror.mirror.user_classes import load_user_class, no_exit
from sparkmirror.wire.admin.admin import Admin, AnyAdmin
from sparkmirror.wire.protocol.error_codes import UNKNOWN_SERVER_ERROR

KEY = COMMON_KEYS["forwarding.admin.class"].name
T = TypeVar("T")


class ForwardingSettings(Protocol):
    """The settings of a connector that this module reads."""

    @property
    def forwarding_admin_class(self) -> str: ...
    @property
    def settings(self) -> Mapping[str, str]: ...


def forwarded(admin: AnyAdmin, config: ForwardingSettings) -> AnyAdmin:
    """The same admin, whose changes go through the user's class if there is one.

    Raises:
        ConfigError: there is no such class, or it is not a ForwardingAdmin.
    """
    name = config.forwarding_admin_class
    if name == FORWARDING_ADMIN:
        return admin
    loaded = load_user_class("forwarding admin", name, lambda reason: _refuse(name, reason))
    with no_exit(lambda reason: _refuse(name, reason)):
        made = loaded.from_settings(config.settings, admin)
    if not isinstance(made, ForwardingAdmin):
        raise _refuse(name, f"it is no {ForwardingAdmin.__name__}")
    return cast("AnyAdmin", ForwardedAdmin(admin, made, name))


def _refuse(name: str, reason: str) -> ConfigError:
    contract = f"{ForwardingAdmin.__module__}.{ForwardingAdmin.__name__}"
    remedy = f"use {FORWARDING_ADMIN}, or module:Class of a Python subclass of {contract}"
    return ConfigError(KEY, name, reason, remedy)


class ForwardedAdmin:
    """An Admin whose reads go to the cluster and whose four writes go to the user's object."""

    def __init__(self, admin: Admin, user: ForwardingAdmin, name: str) -> None:
        self._admin = admin
        self._user = user
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._admin, name)

    def create_topics(self, topics: Iterable[NewTopic]) -> dict[str, BrokerError | None]:
        wanted = list(topics)
        names = [topic.name for topic in wanted]
        return self._ask("create topic", names, lambda: self._user.create_topics(wanted))

    def create_partitions(self, counts: Mapping[str, int]) -> dict[str, BrokerError | None]:
        if not counts:
            return {}
        return self._ask("grow topic", counts, lambda: self._user.create_partitions(counts))

    def alter_topic_configs(
        self, changes: Mapping[str, Sequence[ConfigChange]]
    ) -> dict[str, BrokerError | None]:
        return self._ask(
            "alter configs of topic", changes, lambda: self._user.alter_topic_configs(changes)
        )

    def create_acls(self, rules: Iterable[AclRule]) -> dict[AclRule, BrokerError | None]:
        wanted = list(rules)
        return self._ask("create ACL", wanted, lambda: self._user.create_acls(wanted))

    def _ask(
        self, what: str, things: Iterable[T], call: Callable[[], Mapping[T, object]]
    ) -> dict[T, BrokerError | None]:
        who = f"{KEY}={self._name}"
        try:
            with no_exit(lambda reason: _refuse(self._name, reason)):
                outcomes = call()
        except MirrorError:
            raise
        except Exception as error:  # the user's code may raise anything
            text = f"{what} on '{self._admin.alias}' by {who}: {type(error).__name__}: {error}"
            raise KafkaError(text) from error
        return {thing: self._outcome(what, thing, outcomes) for thing in things}

    def _outcome(self, what: str, thing: T, outcomes: Mapping[T, object]) -> BrokerError | None:
        """What the user's object reports for one thing; a missing report is a failure."""
        missing = f"{KEY}={self._name} does not say whether it was done"
        found = outcomes.get(thing, missing)
        if found is None or isinstance(found, BrokerError):
            return found
        text = f"{what} '{thing}' on '{self._admin.alias}' by {KEY}={self._name}: {found}"
        return BrokerError(text, UNKNOWN_SERVER_ERROR, retriable=False)
