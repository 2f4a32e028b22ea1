"""Files that settings name: anything but a plain file is rejected, not waited for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sparkmirror.config.files.providers import load_providers, resolve
from sparkmirror.config.files.regular_files import MOST_BYTES, read_regular_file
from sparkmirror.config.findings import Findings
from sparkmirror.wire import secret_files

PACKAGE = "org.apache.kafka.common.config.provider."


@pytest.fixture
def odd_files(tmp_path: Path) -> dict[str, str]:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    return {
        "/dev/zero": "not a regular file",
        str(tmp_path / "pipe"): "not a regular file",
        str(tmp_path / "large"): "larger than 16 MiB",
        str(tmp_path): "directory",
        str(tmp_path / "none"): "No such file",
    }


def test_odd_files_are_rejected(odd_files: dict[str, str]) -> None:
    for path, reason in odd_files.items():
        with pytest.raises(OSError, match=reason):
            secret_files.read_file(path)


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"x" * MOST_BYTES)
    (tmp_path / "link").symlink_to("data")
    assert len(read_regular_file(tmp_path / "link")) == MOST_BYTES


@pytest.mark.parametrize("kind", ["File", "Directory"])
def test_config_providers_reject_them_too(kind: str, odd_files: dict[str, str]) -> None:
    props = {
        "config.providers": "p",
        "config.providers.p.class": f"{PACKAGE}{kind}ConfigProvider",
    }
    findings = Findings()
    providers = load_providers(props, findings)
    for path in odd_files:
        folder, _, name = path.rpartition("/")
        value = f"${{p:{path}:key}}" if kind == "File" else f"${{p:{folder}:{name}}}"
        resolve({f"key of {path}": value}, providers, findings)
    assert [error.key for error in findings.errors] == [f"key of {path}" for path in odd_files]
