"""Java's `.properties` rules, and the files we reject."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.config.files.properties import load_properties
from sparkmirror.errors import ConfigErrors


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"a=1\nb:2\nc 3\n", {"a": "1", "b": "2", "c": "3"}, id="separators"),
        pytest.param(b"a = 1\n  b\t:\t2", {"a": "1", "b": "2"}, id="blanks-around"),
        pytest.param(b"# no=1\n! no=2\na=1", {"a": "1"}, id="comments"),
        pytest.param(b"a=1 # not a comment", {"a": "1 # not a comment"}, id="no-inline-comment"),
        pytest.param(b"a=one,\\\n   two", {"a": "one,two"}, id="continued-line"),
        pytest.param(b"a\\=b\\ c=1", {"a=b c": "1"}, id="escaped-key"),
        pytest.param(b"a=\\u00e9\\t.", {"a": "\u00e9\t."}, id="escapes"),
        pytest.param(b"a=caf\xe9", {"a": "caf\u00e9"}, id="latin-1"),
        pytest.param(b"a=1\r\nb=2\r\n", {"a": "1", "b": "2"}, id="windows-lines"),
        pytest.param(b"a\nb=", {"a": "", "b": ""}, id="empty-values"),
        pytest.param(b"a=1  ", {"a": "1  "}, id="trailing-blanks-stay"),
        pytest.param(b"a=1\\\\\nb=2", {"a": "1\\", "b": "2"}, id="escaped-backslash"),
        pytest.param(b"a=1\\", {"a": "1"}, id="backslash-at-the-end"),
        pytest.param(b"a=1,\\\n\nb=2", {"a": "1,", "b": "2"}, id="continued-by-nothing"),
        pytest.param(b"a=1,\\\n# 2", {"a": "1,# 2"}, id="continued-by-no-comment"),
        pytest.param(b"\\\n# a=1\\\nb=2", {"b": "2"}, id="comment-after-a-blank-line"),
        pytest.param(b"A->B.enabled = true", {"A->B.enabled": "true"}, id="flow-key"),
    ],
)
def test_file_is_read_by_javas_rules(tmp_path: Path, data: bytes, expected: dict[str, str]) -> None:
    assert load_properties(write(tmp_path, data)) == expected


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"", "sets no keys", id="empty"),
        pytest.param(b"# only a comment\n\n", "sets no keys", id="comments-only"),
        pytest.param(b"a=1\x00", "not a text file", id="nul-byte"),
        pytest.param(b"\x1f\x8b\x08\x01", "not a text file", id="gzip"),
        pytest.param(b"\xef\xbb\xbfclusters=a", "byte order mark", id="byte-order-mark"),
        pytest.param("clusters=a".encode("utf-16"), "not a text file", id="utf-16"),
        pytest.param(b"a=\\u12g4", "malformed escape", id="bad-escape"),
    ],
)
def test_file_that_is_no_properties_file_is_rejected(
    tmp_path: Path, data: bytes, reason: str
) -> None:
    path = write(tmp_path, data)
    with pytest.raises(ConfigErrors) as caught:
        load_properties(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert reason in str(caught.value)


def test_missing_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors, match=r"mm2\.properties: no such file; check the path"):
        load_properties(tmp_path / "mm2.properties")


def test_directory_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors, match="this is a directory"):
        load_properties(tmp_path)


def test_file_that_cannot_be_opened_is_rejected(tmp_path: Path) -> None:
    # A path through a file fails for every user; a mode would not stop the superuser.
    path = write(tmp_path, b"a=1")
    with pytest.raises(ConfigErrors, match="cannot be read: Not a directory"):
        load_properties(path / "below")


def test_repeated_keys_are_rejected_with_all_their_lines(tmp_path: Path) -> None:
    path = write(tmp_path, b"a=1\n# x\nb=one,\\\n two\nb.password=1\r\na=2\nb=3\na=4\n")
    with pytest.raises(ConfigErrors) as caught:
        load_properties(path)
    assert [(error.key, error.value, error.reason) for error in caught.value.errors] == [
        ("a", None, "set more than once, on lines 1, 6 and 8"),
        ("b", None, "set more than once, on lines 3 and 7"),
    ]
