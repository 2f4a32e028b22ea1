"""Secret files: from the disk, or from the worker over the control link."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.wire import secret_files


@pytest.fixture(autouse=True)
def nothing_provided() -> Iterator[None]:
    yield
    secret_files.forget_provided()


def test_file_of_the_disk_is_read(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_bytes(b"one")
    assert secret_files.read_file(str(path)) == b"one"


def test_missing_file_is_an_error_and_has_no_stamp(tmp_path: Path) -> None:
    path = str(tmp_path / "none")
    assert secret_files.stamp(path) is None
    with pytest.raises(FileNotFoundError):
        secret_files.read_file(path)


def test_stamp_changes_with_the_file(tmp_path: Path) -> None:
    path, other = tmp_path / "token", tmp_path / "new"
    path.write_bytes(b"one")
    first = secret_files.stamp(str(path))
    assert secret_files.stamp(str(path)) == first
    other.write_bytes(b"two")
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    other.replace(path)
    assert secret_files.stamp(str(path)) != first


def test_provided_bytes_take_the_place_of_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_bytes(b"disk")
    on_disk = secret_files.stamp(str(path))
    secret_files.provide(str(path), b"link")
    first = secret_files.stamp(str(path))
    assert secret_files.read_file(str(path)) == b"link"
    assert first != on_disk
    secret_files.provide(str(path), b"renewed")
    assert secret_files.stamp(str(path)) != first
    secret_files.forget_provided()
    assert secret_files.read_file(str(path)) == b"disk"


def test_provided_file_need_not_exist() -> None:
    secret_files.provide("/no/such/keytab", b"keys")
    assert secret_files.read_file("/no/such/keytab") == b"keys"


def test_a_library_opens_what_was_provided_and_nothing_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    secret_files.provide("/no/such/keytab", b"keys")
    path = secret_files.path_of("/no/such/keytab")
    assert secret_files.path_of("/no/such/keytab") == path
    for _ in range(2):  # each opens it again, from its start
        assert Path(path).read_bytes() == b"keys"
    assert list(tmp_path.iterdir()) == []
    secret_files.provide("/no/such/keytab", b"renewed")
    assert Path(secret_files.path_of("/no/such/keytab")).read_bytes() == b"renewed"


def test_nothing_is_left_when_a_task_has_ended() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    secret_files.provide("/no/such/keytab", b"keys")
    path = secret_files.path_of("/no/such/keytab")
    secret_files.forget_provided()
    assert not Path(path).exists()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    with pytest.raises(FileNotFoundError):
        secret_files.path_of("/no/such/keytab")


def test_where_there_is_no_memory_for_it_a_file_of_the_owner_alone_is_removed_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    secret_files.provide("/no/such/keytab", b"keys")
    path = Path(secret_files.path_of("/no/such/keytab"))
    assert path.parent == tmp_path
    assert path.stat().st_mode & 0o777 == 0o600
    secret_files.forget_provided()
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_the_disk_is_opened_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "keytab"
    path.write_bytes(b"keys")
    assert secret_files.path_of(str(path)) == str(path)
