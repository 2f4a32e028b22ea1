"""The session key of a group of workers, with which they sign requests to each other.

Runs on: worker. The leader generates it, the config topic distributes it. Mirrors: the part of
org.apache.kafka.connect.runtime.distributed.DistributedHerder that rotates keys (KIP-507).
"""

from __future__ import annotations

import base64
import binascii
import logging
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sparkmirror.config.worker.inter_worker import InterWorkerConfig

log = logging.getLogger(__name__)

# A worker that has not read the newest key yet signs with the one before.
OLD_KEY_MS = 60_000


@dataclass(frozen=True, slots=True)
class SessionKey:
    """A key, its algorithm, and when it was generated."""

    key: bytes = field(repr=False)
    algorithm: str
    created_ms: int

    def document(self) -> dict[str, Any]:
        """The record of the config topic; the order of the fields is Connect's."""
        return {
            "key": base64.b64encode(self.key).decode(),
            "algorithm": self.algorithm,
            "creation-timestamp": self.created_ms,
        }


def parse_session_key(document: Mapping[str, Any]) -> SessionKey:
    """Raises ValueError, without the key in its text."""
    key, algorithm = document.get("key"), document.get("algorithm")
    created_ms = document.get("creation-timestamp")
    if not isinstance(key, str) or not isinstance(algorithm, str):
        raise ValueError("'key' and 'algorithm' must be texts")  # noqa: TRY004  of a document
    if not isinstance(created_ms, int) or isinstance(created_ms, bool):
        raise ValueError("'creation-timestamp' must be a number")  # noqa: TRY004
    try:
        decoded = base64.b64decode(key, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("'key' is not base64") from None
    if not decoded:
        raise ValueError("'key' is empty")
    return SessionKey(decoded, algorithm, created_ms)


def accepted_keys(keys: Sequence[SessionKey], now_ms: int) -> Sequence[SessionKey]:
    """The keys whose signatures are accepted: old ones only for a minute."""
    newest_ms = max((key.created_ms for key in keys), default=0)
    is_fresh = now_ms < newest_ms + OLD_KEY_MS
    return [key for key in keys if is_fresh or key is keys[0] or key.created_ms == newest_ms]


class KeyTopic(Protocol):
    """The part of the config topic that holds the session key."""

    def session_keys(self) -> Sequence[SessionKey]:
        """The newest key and the one before, as far as they have been read."""

    def put_session_key(self, key: SessionKey) -> None: ...


class SessionKeyRotation:
    """Writes a new key when the group has none or an outdated one, while this worker leads."""

    def __init__(
        self,
        config: InterWorkerConfig,
        topic: KeyTopic,
        leads: Callable[[], bool],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._config = config
        self._topic = topic
        self._leads = leads
        self._clock = clock

    def renew(self) -> None:
        """Write a new key if one is due. Raises KafkaError."""
        now_ms = int(self._clock() * 1000)
        if self._leads() and self._is_due(self._topic.session_keys(), now_ms):
            config = self._config
            key = secrets.token_bytes(config.key_bytes)
            self._topic.put_session_key(SessionKey(key, config.key_generation_algorithm, now_ms))
            log.info("the workers have a new session key")

    def _is_due(self, keys: Sequence[SessionKey], now_ms: int) -> bool:
        if not keys:
            return True
        newest, config = keys[0], self._config
        has_expired = 0 < config.key_ttl_ms <= now_ms - newest.created_ms
        is_other = newest.algorithm != config.key_generation_algorithm
        return has_expired or is_other or len(newest.key) != config.key_bytes
