"""Every error of the program crosses Spark's process boundary whole."""

from __future__ import annotations

import importlib
import pickle
import pkgutil
import traceback
from collections.abc import Iterator
from http import HTTPStatus

import pytest

import sparkmirror
from sparkmirror.connect.entities import NotLeader, RequestError
from sparkmirror.errors import (
    BrokerError,
    ConfigError,
    ConfigErrors,
    DeniedError,
    KafkaError,
    MirrorError,
    describe_error,
)
from sparkmirror.rest.exception_mapper import BadUri, Unmatched
from sparkmirror.wire.net.outages import SilentError
from sparkmirror.wire.protocol.error_codes import broker_error

ONE = ConfigError("tasks.max", "many", "not a number", "give a number", "mm2.properties")
# Classes with arguments of their own; all others take a message.
SAMPLES: dict[type[MirrorError], MirrorError] = {
    ConfigError: ONE,
    ConfigErrors: ConfigErrors([ONE, ConfigError("x", None, "is missing")]),
    BrokerError: broker_error("fetch t-0", 6, "moved"),
    DeniedError: DeniedError("fetch t-0: User:m lacks READ", 29, "kafka-acls.sh", "t waits"),
    SilentError: SilentError("no byte for 9 s", 9.0, "h:1", "cluster 'b' (h:1)"),
    RequestError: RequestError(404, "Connector c not found"),
    NotLeader: NotLeader("http://other:8083/"),
    Unmatched: Unmatched(HTTPStatus.METHOD_NOT_ALLOWED),
    BadUri: BadUri("Ambiguous URI empty segment"),
}


def all_errors() -> Iterator[type[MirrorError]]:
    """MirrorError and everything below it, in whichever module."""
    for module in pkgutil.walk_packages(sparkmirror.__path__, "sparkmirror."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found: list[type[MirrorError]] = [MirrorError]
    for each in found:
        found += each.__subclasses__()
    # Classes that tests define are theirs to look after.
    yield from (each for each in found if each.__module__.startswith("sparkmirror"))


ERRORS = sorted(set(all_errors()), key=lambda kind: kind.__qualname__)
every_error = pytest.mark.parametrize("kind", ERRORS, ids=[kind.__name__ for kind in ERRORS])


def sample(kind: type[MirrorError]) -> MirrorError:
    return SAMPLES.get(kind) or kind("what, on what, why; what to do")


def test_errors_are_found_in_all_packages() -> None:
    assert len(ERRORS) > 12
    assert len({kind.__module__ for kind in ERRORS}) > 1


@every_error
def test_it_pickles_whole(kind: type[MirrorError]) -> None:
    error = sample(kind)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == str(error) != ""
    # By their words: errors within errors are equal to themselves only.
    assert repr(again.args) == repr(error.args)
    assert repr(vars(again)) == repr(vars(error))
    assert again.retriable == error.retriable


@every_error
def test_its_message_is_in_a_traceback(kind: type[MirrorError]) -> None:
    error = sample(kind)
    assert str(error) in "".join(traceback.format_exception_only(error))


@every_error
def test_it_says_what_it_is_for(kind: type[MirrorError]) -> None:
    assert kind.__doc__
    assert kind.__doc__ != KafkaError.__doc__ or kind is KafkaError


def test_classes_with_arguments_of_their_own_have_a_sample() -> None:
    own = {kind for kind in ERRORS if "__init__" in vars(kind)}
    assert own <= SAMPLES.keys()


@pytest.mark.parametrize(
    ("error", "text"),
    [
        pytest.param(ONE, "mm2.properties: tasks.max=many: not a number; give a number", id="all"),
        pytest.param(ConfigError("x", None, "is missing"), "x: is missing", id="no value"),
        pytest.param(ConfigError("", None, "empty", where="f"), "f: empty", id="no key"),
        pytest.param(
            SAMPLES[ConfigErrors],
            "mm2.properties: tasks.max=many: not a number; give a number\nx: is missing",
            id="several",
        ),
    ],
)
def test_messages_of_settings(error: MirrorError, text: str) -> None:
    assert str(error) == text


def test_retriable_is_part_of_the_class_or_of_the_code() -> None:
    retriable = {kind.__name__ for kind in ERRORS if kind.retriable and kind is not BrokerError}
    assert {"TransportError", "RemoteProtocolError"} <= retriable
    assert not KafkaError.retriable
    assert broker_error("fetch", 6).retriable
    assert not broker_error("fetch", 29).retriable


@pytest.mark.parametrize(
    ("error", "text"),
    [
        pytest.param(
            DeniedError("fetch t-0: User:m lacks READ", 29, "kafka-acls.sh --add"),
            "fetch t-0: User:m lacks READ; t-0 waits; to allow it: kafka-acls.sh --add",
            id="denied",
        ),
        pytest.param(KafkaError("gone"), "gone; t-0 waits", id="any other"),
    ],
)
def test_what_happens_meanwhile_is_told(error: MirrorError, text: str) -> None:
    assert describe_error(error, "t-0 waits") == text
