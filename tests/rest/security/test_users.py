"""Users of a file, and who of them a header stands for."""

from __future__ import annotations

import base64
import hashlib
import logging
from pathlib import Path

import pytest

from sparkmirror.errors import ConfigErrors
from sparkmirror.rest.security.users import User, Users, load_users, parse_basic
from tests.rest.transport.test_rate_limit import Clock


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


def quick_hash(text: str) -> str:
    """A hash that costs nothing."""
    made = hashlib.pbkdf2_hmac("sha256", text.encode(), b"salt", 1)
    return f"$pbkdf2-sha256$1$c2FsdA${base64.b64encode(made).decode().rstrip('=')}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "users.properties"
    path.write_text(f"alice: in-the-clear\nbob = {quick_hash('hashed')}\nwatcher=look\n")
    return path


@pytest.mark.parametrize(
    ("header", "user"),
    [
        (basic("alice:in-the-clear"), User("alice")),
        (basic("bob:hashed"), User("bob")),
        (basic("watcher:look"), User("watcher", may_write=False)),
        (basic("alice:wrong"), None),
        (basic("bob:in-the-clear"), None),
        (basic("carol:in-the-clear"), None),
        (basic("alice"), None),
        ("", None),
        ("Bearer x", None),
    ],
    ids=["plain", "hash", "reader", "wrong", "other's", "unknown", "no colon", "none", "scheme"],
)
def test_login(file: Path, header: str, user: User | None) -> None:
    users = Users(file, ["watcher"])
    assert users.known(header) is None
    assert users.login(header) == user
    assert users.known(header) == user


def test_everybody_can_be_a_reader(file: Path) -> None:
    assert Users(file, ["*"]).login(basic("alice:in-the-clear")) == User("alice", False)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (basic("a:b"), ("a", "b")),
        (basic("a:b").replace("Basic", "bAsIc"), ("a", "b")),
        (basic("a:b:c"), ("a", "b:c")),
        (basic("a:"), ("a", "")),
        (basic("\u00e4:\u00f6"), ("\u00e4", "\u00f6")),
        (basic(":b"), None),
        (basic("ab"), None),
        ("Basic", None),
        ("Basic ?", None),
        ("Basic \u00e4", None),
        ("Basic " + base64.b64encode(b"\xff:\xff").decode(), None),
        (basic("a:b").removeprefix("Basic "), None),
    ],
)
def test_header(header: str, expected: tuple[str, str] | None) -> None:
    assert parse_basic(header) == expected


def _write(path: Path, text: str) -> None:
    """As another file, the way editors and Kubernetes do it."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def test_file_is_read_again_when_it_changes(file: Path) -> None:
    clock = Clock()
    users = Users(file, clock=clock)
    old, new = basic("alice:in-the-clear"), basic("alice:changed")
    assert users.login(old) == User("alice")
    _write(file, "alice: changed\n")
    clock.now += 2
    assert users.known(old) is None
    assert users.login(old) is None
    assert users.login(new) == User("alice")


@pytest.mark.parametrize("text", ["", "alice:\n", "alice: $scrypt$x\n"])
def test_file_that_becomes_no_good_changes_nothing(
    file: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    users = Users(file, clock=clock)
    header = basic("alice:in-the-clear")
    _write(file, text)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            clock.now += 2
            assert users.known(header) is None
    assert users.login(header) == User("alice")
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith(f"{file}: ")
    assert caplog.messages[0].endswith("the previous users stay valid")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "sets no keys"),
        ("a=", "a: the password is empty"),
        ("=x", "not a user name"),
        ("a\\:b=x", "not a user name"),
        ("a=x\na=y", "a: set more than once"),
        ("a=$scrypt$ln=1", "a: the password looks hashed, but"),
        (None, "no such file"),
    ],
)
def test_file_that_has_no_users_is_an_error(tmp_path: Path, text: str | None, reason: str) -> None:
    path = tmp_path / "users"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigErrors, match=reason):
        load_users(path)


def test_reader_who_is_not_in_the_file_is_reported(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Users(file, ["watcher", "wacther"])
    assert caplog.messages == [f"rest.read.only.users: wacther not in {file}"]
