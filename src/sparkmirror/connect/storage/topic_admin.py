"""Creates MirrorMaker 2's internal topics: heartbeats, checkpoints, offset-syncs, offset maps.

Runs on: worker. Connect's own topics have stricter checks (storage_topics).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from sparkmirror.connect.storage.compaction import CLEANUP, COMPACT, repair_cleanup
from sparkmirror.errors import (
    BrokerError,
    DeniedError,
    KafkaError,
    MirrorError,
    TransportError,
    describe_error,
)
from sparkmirror.wire.admin.admin import Admin, NewTopic
from sparkmirror.wire.protocol.error_codes import error_code

log = logging.getLogger(__name__)

CONFIGS = {CLEANUP: COMPACT}


class InternalTopic(NamedTuple):
    """A topic that should exist; `setting` is the key that gave `replication_factor`.

    `without`: the consequence if it neither exists nor may be created. `is_chosen`: the user has
    set the number of replicas.
    """

    admin: Admin
    name: str
    replication_factor: int
    setting: str
    without: str = ""
    is_chosen: bool = False


def ensure_internal_topics(topics: Iterable[InternalTopic]) -> None:
    """Create all topics, even after one of them is rejected.

    Raises:
        KafkaError: the topics that failed, and why; TransportError if none was rejected.
    """
    errors: list[KafkaError] = []
    for topic in topics:
        try:
            ensure_internal_topic(*topic[:-1], is_chosen=topic.is_chosen)
        except KafkaError as error:
            errors.append(error)
    if errors:
        is_passing = all(isinstance(error, TransportError) for error in errors)
        kind = TransportError if is_passing else KafkaError
        raise kind("; ".join(map(str, errors)))


def ensure_internal_topic(
    admin: Admin,
    topic: str,
    replication_factor: int,
    setting: str = "its replication.factor",
    without: str = "",
    *,
    is_chosen: bool = False,
    is_missing: bool = False,
) -> None:
    """Create `topic`, compacted, with one partition; an existing one is compacted if it is ours.

    A denial is no error if the topic exists; with `is_missing` it is known not to. Auto-creation is
    not used: topics that brokers create are not compacted, so they would lose state in time.

    Raises:
        KafkaError: the cluster rejects the topic; names `setting`.
    """
    error = _create(admin, topic, replication_factor, setting, is_chosen=is_chosen)
    if error is None:
        if wrong := repair_cleanup(admin, topic):
            log.warning("%s", wrong)
    elif isinstance(error, DeniedError) and not is_missing and _is_there(admin, topic):
        log.debug("%s; it is there", error)
    elif error_code(error.code).name == "UNSUPPORTED_VERSION" and not is_missing:
        # An operator may have created it: the first write will show whether it exists.
        log.info("%s; going on as if it were there", error)
    else:
        advice = _advice(error, replication_factor, setting)
        is_denied = isinstance(error, DeniedError) and without
        raise KafkaError(
            describe_error(error, f"{without}; {advice}" if is_denied else advice)
        ) from error


def _create(
    admin: Admin, topic: str, replication_factor: int, setting: str, *, is_chosen: bool
) -> BrokerError | None:
    """Create the topic; with fewer than 3 brokers, the default of 3 replicas is lowered.

    A number that the user chose is kept. On so small a cluster MirrorMaker 2 relies on
    auto-creation, which uses the brokers' number of replicas, but does not compact the topic.
    """
    error = admin.create_topics([NewTopic(topic, 1, replication_factor, CONFIGS)])[topic]
    if error is None or is_chosen or not _is_too_many(error):
        return error
    brokers = admin.broker_count()
    if not 0 < brokers < replication_factor:
        return error
    if (again := admin.create_topics([NewTopic(topic, 1, brokers, CONFIGS)])[topic]) is not None:
        return again
    log.warning(
        "'%s' on '%s' has %d instead of %d replicas: there are no more brokers; set %s to at most "
        "the number of brokers, or add replicas when there are more",
        topic,
        admin.alias,
        brokers,
        replication_factor,
        setting,
    )
    return None


def _is_too_many(error: BrokerError) -> bool:
    return error_code(error.code).name == "INVALID_REPLICATION_FACTOR"


def _is_there(admin: Admin, topic: str) -> bool:
    return admin.find_topics([topic])[topic] is None


class Blockable(Protocol):
    """A task that can do nothing without its topics; `refused`: why they cannot be created."""

    refused: str


@contextmanager
def noting_refusal(connector: Blockable) -> Iterator[None]:
    """Set `refused` while a topic that the body creates is rejected.

    A cluster that does not respond leaves it as it is: existing topics still exist.
    """
    try:
        yield
    except TransportError:
        raise
    except MirrorError as error:
        connector.refused = str(error)
        raise
    connector.refused = ""


def about_missing(topics: Iterable[str], alias: str) -> dict[str, str]:
    """Warnings about internal topics that were deleted while in use."""
    return {topic: f"'{topic}' is missing on '{alias}': creating it again" for topic in topics}


def _advice(error: BrokerError, replication_factor: int, setting: str) -> str:
    if isinstance(error, DeniedError):
        return "an administrator may create it too: 1 partition, cleanup.policy=compact"
    if _is_too_many(error):
        return f"set {setting} to at most the number of brokers"
    return f"{replication_factor} replicas were asked for, see {setting}"
