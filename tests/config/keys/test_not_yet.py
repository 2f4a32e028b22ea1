"""The table of what this version lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.config.config_def import KeySupport
from sparkmirror.config.findings import Findings
from sparkmirror.config.keys.connector_keys import FRAMEWORK_KEYS, MIRROR_KEYS
from sparkmirror.config.keys.not_yet import (
    ABSENT,
    NOT_YET,
    Absent,
    Lacking,
    check_not_yet,
    status_of,
)
from sparkmirror.config.mm2_keys import MM2_KEYS
from sparkmirror.config.worker_config import WORKER_KEYS

PROJECT = Path(__file__).parents[3]
KNOWN = MIRROR_KEYS + FRAMEWORK_KEYS + WORKER_KEYS + MM2_KEYS


@pytest.mark.parametrize("row", NOT_YET, ids=lambda row: row.key)
def test_row_is_about_a_known_key(row: Lacking) -> None:
    assert row.key in KNOWN
    status, reason = status_of(KNOWN[row.key])
    assert status is KeySupport.NOT_YET
    assert reason in [other.reason for other in NOT_YET if other.key == row.key]


@pytest.mark.parametrize(
    ("key", "value", "refused", "warned"),
    [
        ("transforms", ("a",), True, False),
        ("transforms", (), False, False),
        ("exactly.once.source.support", "preparing", False, True),
        ("exactly.once.source.support", "disabled", False, False),
        ("exactly.once.source.support", "enabled", True, False),
        ("offset.lag.max", 5, False, False),
    ],
)
def test_value_that_asks_for_more_is_reported(
    key: str, value: object, refused: bool, warned: bool
) -> None:
    findings = Findings()
    check_not_yet({key: value}, findings)
    assert [error.key for error in findings.errors] == [key] * refused
    assert len(findings.warnings) == warned


def test_other_keys_keep_their_status() -> None:
    assert status_of(KNOWN["topics"]) == (KeySupport.HONOURED, "")
    assert status_of(KNOWN["errors.log.enable"])[0] is KeySupport.EXPLAINED


@pytest.mark.parametrize("document", ["README.md", "CHANGELOG.md", "docs/compatibility.md"])
@pytest.mark.parametrize("absent", ABSENT, ids=lambda absent: absent.name)
def test_documents_name_everything_that_is_missing(absent: Absent, document: str) -> None:
    text = (PROJECT / document).read_text()
    # Of the changelog, what concerns this version.
    newest = text.split("\n## ")[1] if document == "CHANGELOG.md" else text
    assert absent.name in " ".join(newest.split())
