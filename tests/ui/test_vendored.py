"""The libraries and fonts of the page are those of the npm packages in tools/vendored_ui.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ui.fixture_worker import UI
from tools import vendored_ui as tool

ASSETS = UI / "assets"


def test_every_vendored_file_comes_from_a_named_package() -> None:
    named = {path for package in tool.PACKAGES for path in package.files.values()}
    there = {
        str(path.relative_to(ASSETS))
        for folder in ("vendor", "fonts")
        for path in (ASSETS / folder).iterdir()
    }
    assert there == named


def test_every_package_brings_its_licence() -> None:
    names = {package.name for package in tool.PACKAGES}
    licensed = {p.name for p in tool.PACKAGES if any("LICENSE" in f for f in p.files.values())}
    # signals and signals-core are one project under one licence.
    assert names - licensed == {"@preact/signals-core"}
    for path in ASSETS.rglob("*.LICENSE.txt"):
        assert path.stat().st_size > 500, path


def test_the_check_finds_a_changed_and_a_foreign_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for folder in ("vendor", "fonts"):
        (tmp_path / folder).mkdir()
    (tmp_path / "vendor" / "a.js").write_bytes(b"changed")
    (tmp_path / "vendor" / "b.js").write_bytes(b"foreign")
    monkeypatch.setattr(tool, "ASSETS", tmp_path)
    assert tool._compare({"vendor/a.js": b"original"}) == 1
    said = capsys.readouterr().err
    assert "vendor/a.js is not what its npm package contains" in said
    assert "vendor/b.js is missing, or comes from no package" in said


def test_imports_are_of_files_beside_and_source_maps_are_left_out() -> None:
    source = b'import{a}from"preact";import"x"\n//# sourceMappingURL=a.js.map\n'
    assert tool.adapted("vendor/a.js", source) == b'import{a}from"./preact.js";import"x"\n'
    assert tool.adapted("vendor/a.css", source) == source
