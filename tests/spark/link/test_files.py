"""Files on their way to tasks: in the start message, and again when they change."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.spark.link import files as link_files
from sparkmirror.spark.link.files import FILES, SecretFileSender, provide_files
from sparkmirror.spark.link.frames import decode_message, encode_message
from sparkmirror.wire import secret_files

CLIENT = ClientConfig("a", ("127.0.0.1:1",))


class NamedFiles:
    """Security that names some files, whatever the client."""

    paths: tuple[str, ...] = ()

    @classmethod
    def of(cls, _: ClientConfig) -> NamedFiles:
        return cls()

    def files(self) -> tuple[str, ...]:
        return self.paths


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file that clients need; executors are to get it."""
    path = tmp_path / "trust.jks"
    path.write_bytes(b"\x00\xff first")
    monkeypatch.setattr(NamedFiles, "paths", (str(path), str(tmp_path / "missing")))
    monkeypatch.setattr(link_files, "Security", NamedFiles)
    yield path
    secret_files.forget_provided()


def replace(path: Path, data: bytes) -> None:
    """As renewals do it: another file takes its place."""
    new = path.with_suffix(".new")
    new.write_bytes(data)
    new.replace(path)


def travelled(message: dict[str, object]) -> dict[str, object]:
    return decode_message(encode_message(message)[4:])


def test_the_start_message_has_every_file_that_exists(store: Path) -> None:
    start_message = travelled(SecretFileSender([CLIENT, CLIENT]).all())
    store.unlink()
    provide_files(start_message)
    assert secret_files.read_file(str(store)) == b"\x00\xff first"
    assert list(json.loads(json.dumps(start_message))[FILES]) == [str(store)]


def test_nothing_is_sent_while_nothing_changes(store: Path) -> None:
    files = SecretFileSender([CLIENT])
    files.all()
    assert files.take_changed() is None
    os.utime(store, ns=(1, 1))
    assert files.take_changed() is not None
    assert files.take_changed() is None


def test_a_file_that_changes_is_sent_and_used(store: Path) -> None:
    files = SecretFileSender([CLIENT])
    provide_files(travelled(files.all()))
    before = secret_files.stamp(str(store))
    secret_files.forget_provided()  # the worker's process has its own disk
    replace(store, b"second")
    message = files.take_changed()
    assert message is not None
    assert message["type"] == FILES
    store.unlink()
    provide_files(travelled(message))
    assert secret_files.read_file(str(store)) == b"second"
    assert secret_files.stamp(str(store)) != before


def test_a_file_that_appears_later_is_sent(store: Path) -> None:
    files = SecretFileSender([CLIENT])
    files.all()
    late = store.parent / "missing"
    late.write_bytes(b"here")
    message = files.take_changed()
    assert message is not None
    assert list(message[FILES]) == [str(late)]


def test_a_file_that_cannot_be_read_yet_is_sent_when_it_can(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = SecretFileSender([CLIENT])
    files.all()
    replace(store, b"second")
    with monkeypatch.context() as patched:
        patched.setattr(secret_files, "read_file", refuse)
        assert files.take_changed() is None
    assert files.take_changed() is not None


def refuse(path: str) -> bytes:
    raise PermissionError(path)


def test_a_start_message_without_files_changes_nothing() -> None:
    provide_files({"type": "start"})
    assert secret_files.stamp("/nowhere") is None
