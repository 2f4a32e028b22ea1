"""Whom many questions go to, and which are asked again; no broker."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import BrokerError, KafkaError, RemoteProtocolError, TransportError
from sparkmirror.wire.admin import admin_client
from sparkmirror.wire.admin.broker_routed_admin import BrokerRoutedAdmin
from sparkmirror.wire.protocol.error_codes import broker_error

NOT_COORDINATOR = 16
UNKNOWN_TOPIC = 3
GROUP_AUTHORIZATION_FAILED = 30


class Questions(BrokerRoutedAdmin):
    """Asks brokers that are functions: group `g7` belongs to broker 7."""

    def __init__(self, timeout_ms: int = 5000) -> None:
        self._alias = "b"
        self._timeout_ms = timeout_ms
        self._config = ClientConfig("b", ("h:1",), retry_backoff_ms=1)
        self._owners = {}
        self.found: list[list[str]] = []
        self.asked: list[tuple[int, list[str]]] = []
        self.responses: dict[str, list[str | KafkaError]] = {}

    def ask(self, *keys: str) -> dict[str, str | KafkaError]:
        return self._ask_until_settled(keys, self._find, self._response)

    def _find(self, keys: Sequence[str]) -> dict[str, int | KafkaError]:
        self.found.append(list(keys))
        lost = broker_error("find", GROUP_AUTHORIZATION_FAILED)
        return {key: lost if key == "secret" else int(key[1:]) for key in keys}

    def _response(self, node: int, keys: Sequence[str]) -> dict[str, str | KafkaError]:
        self.asked.append((node, list(keys)))
        if node == 9:
            raise TransportError("broker 9 is gone")
        scripted = {key: self.responses.get(key, ["yes"]) for key in keys}
        return {key: left.pop(0) for key, left in scripted.items() if left}


def test_each_owner_gets_one_request() -> None:
    questions = Questions()
    assert questions.ask("g1", "g2", "g1", "g1") == {"g1": "yes", "g2": "yes"}
    assert questions.asked == [(1, ["g1"]), (2, ["g2"])]
    assert questions.found == [["g1", "g2"]]


def test_requests_have_an_upper_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_client, "MOST_PARTS", 2)
    questions = Questions()
    keys = ["g1", "g01", "g001", "g2", "g0001"]
    assert set(questions.ask(*keys)) == set(keys)
    assert questions.found == [["g1", "g01"], ["g001", "g2"], ["g0001"]]
    assert questions.asked == [(1, ["g1", "g01"]), (1, ["g001", "g0001"]), (2, ["g2"])]


def test_owners_are_remembered_until_they_fail() -> None:
    questions = Questions()
    questions.responses = {"g2": ["yes", broker_error("ask", GROUP_AUTHORIZATION_FAILED), "yes"]}
    for _ in range(3):
        questions.ask("g1", "g2")
    assert questions.found == [["g1", "g2"], ["g2"]]


def test_an_error_that_passes_is_asked_again_alone() -> None:
    questions = Questions()
    questions.responses = {"g2": [broker_error("ask", NOT_COORDINATOR), "late"]}
    assert questions.ask("g1", "g2") == {"g1": "yes", "g2": "late"}
    assert questions.asked == [(1, ["g1"]), (2, ["g2"]), (2, ["g2"])]


@pytest.mark.parametrize("code", [UNKNOWN_TOPIC, GROUP_AUTHORIZATION_FAILED])
def test_a_lasting_error_is_the_result_of_its_key_alone(code: int) -> None:
    questions = Questions()
    error = broker_error("ask", code)
    questions.responses = {"g2": [error]}
    assert questions.ask("g1", "g2") == {"g1": "yes", "g2": error}


def test_a_key_without_owner_fails_alone() -> None:
    responses = Questions().ask("secret", "g1")
    assert responses["g1"] == "yes"
    assert str(responses["secret"]) == "find: GROUP_AUTHORIZATION_FAILED"


def test_a_broker_that_is_gone_fails_its_own_keys_only() -> None:
    responses = Questions(timeout_ms=20).ask("g1", "g9")
    assert responses["g1"] == "yes"
    assert isinstance(responses["g9"], TransportError)


def test_what_a_broker_leaves_out_is_an_error() -> None:
    questions = Questions(timeout_ms=20)
    questions.responses = {"g1": []}
    response = questions.ask("g1")["g1"]
    assert isinstance(response, RemoteProtocolError)
    assert not isinstance(response, BrokerError)
