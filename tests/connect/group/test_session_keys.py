"""Session keys: when the leader makes one, and what the config topic holds of them."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence

import pytest

from sparkmirror.config.worker.inter_worker import InterWorkerConfig
from sparkmirror.connect.group.session_keys import SessionKey, SessionKeyRotation
from sparkmirror.connect.storage.config_records import ConfigState, session_key_record

# As genuine workers write them; tests/kafka/test_genuine_connect.py compares with a real one.
GENUINE = (
    b'{"key":"0nQkWcY2l1XvQ4g8zT0m0uH3xJ6yqS7bZ5r9oP1dE2A=","algorithm":"HmacSHA256",'
    b'"creation-timestamp":1763340000123}'
)


class Topic:
    """The session keys of a config topic."""

    def __init__(self, *keys: SessionKey) -> None:
        self.keys = list(keys)

    def session_keys(self) -> Sequence[SessionKey]:
        return self.keys

    def put_session_key(self, key: SessionKey) -> None:
        self.keys.insert(0, key)


def renewed(
    topic: Topic,
    config: InterWorkerConfig | None = None,
    *,
    leads: bool = True,
    now_ms: int = 10_000_000,
) -> bool:
    before = len(topic.keys)
    rotation = SessionKeyRotation(
        config or InterWorkerConfig(), topic, lambda: leads, lambda: now_ms / 1000
    )
    rotation.renew()
    return len(topic.keys) > before


def test_bytes_are_those_of_connect() -> None:
    state = ConfigState()
    state.apply(b"session-key", GENUINE)
    (key,) = state.snapshot().session_keys
    assert (len(key.key), key.algorithm, key.created_ms) == (32, "HmacSHA256", 1763340000123)
    assert session_key_record(key) == (b"session-key", GENUINE)


def test_topic_gives_the_newest_key_and_the_one_before() -> None:
    state = ConfigState()
    keys = [SessionKey(bytes([at]) * 32, "HmacSHA256", at) for at in (1, 2, 3)]
    for key in keys:
        state.apply(*session_key_record(key))
    assert state.snapshot().session_keys == (keys[2], keys[1])


@pytest.mark.parametrize(
    "document",
    [
        None,
        {"algorithm": "HmacSHA256", "creation-timestamp": 1},
        {"key": "c2VjcmV0LWtleQ==", "creation-timestamp": 1},
        {"key": "c2VjcmV0LWtleQ==", "algorithm": "HmacSHA256"},
        {"key": "c2VjcmV0LWtleQ==", "algorithm": "HmacSHA256", "creation-timestamp": "1"},
        {"key": "c2VjcmV0LWtleQ", "algorithm": "HmacSHA256", "creation-timestamp": 1},
        {"key": "", "algorithm": "HmacSHA256", "creation-timestamp": 1},
    ],
)
def test_odd_key_is_passed_over_and_not_printed(
    document: object, caplog: pytest.LogCaptureFixture
) -> None:
    state = ConfigState()
    state.apply(b"session-key", GENUINE)
    with caplog.at_level(logging.DEBUG):
        state.apply(b"session-key", None if document is None else json.dumps(document).encode())
    assert [key.created_ms for key in state.snapshot().session_keys] == [1763340000123]
    assert "'session-key' of the config topic is passed over" in caplog.text
    assert "c2VjcmV0" not in caplog.text


def test_key_is_not_in_its_text() -> None:
    assert "secret" not in repr(SessionKey(b"secret", "HmacSHA256", 1))


def test_leader_makes_the_first_key() -> None:
    topic = Topic()
    assert renewed(topic)
    assert (len(topic.keys[0].key), topic.keys[0].created_ms) == (32, 10_000_000)
    assert not renewed(topic)


def test_only_the_leader_makes_keys() -> None:
    assert not renewed(Topic(), leads=False)


def test_key_is_renewed_when_its_time_is_over() -> None:
    topic = Topic(SessionKey(b"k" * 32, "HmacSHA256", 10_000_000))
    hour = 3_600_000
    assert not renewed(topic, now_ms=10_000_000 + hour - 1)
    assert renewed(topic, now_ms=10_000_000 + hour)


def test_key_lasts_for_ever_without_a_ttl() -> None:
    topic = Topic(SessionKey(b"k" * 32, "HmacSHA256", 0))
    assert not renewed(topic, InterWorkerConfig(key_ttl_ms=0), now_ms=10**13)


@pytest.mark.parametrize(
    ("config", "length"),
    [
        (InterWorkerConfig(key_generation_algorithm="HmacSHA512"), 64),
        (InterWorkerConfig(key_size_bits=512), 64),
        (InterWorkerConfig(key_size_bits=41), 6),
    ],
)
def test_key_of_other_settings_is_replaced(config: InterWorkerConfig, length: int) -> None:
    topic = Topic(SessionKey(b"k" * 32, "HmacSHA256", 10_000_000))
    assert renewed(topic, config)
    assert len(topic.keys[0].key) == length
    assert not renewed(topic, config)
