"""The table of permissions: what documents and messages take from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.mirror.permissions import (
    ALTER,
    NEEDS,
    READ,
    SETTINGS,
    Feature,
    Need,
    ResourceKind,
    consequence_without,
    needs_of,
    table_lines,
)

DOCUMENT = Path(__file__).parents[2] / "docs" / "security.md"


def test_the_document_has_the_table() -> None:
    text = DOCUMENT.read_text()
    for line in table_lines():
        assert line in text, f"run python -m sparkmirror.mirror.permissions: {line!r} is missing"


@pytest.mark.parametrize("feature", list(Feature))
def test_every_feature_needs_something_and_says_how_it_is_turned_on(feature: Feature) -> None:
    assert needs_of(feature)
    assert SETTINGS[feature]


@pytest.mark.parametrize("need", NEEDS, ids=lambda need: f"{need.feature}-{need.place.name}")
def test_every_permission_says_what_it_is_for_and_what_happens_without(need: Need) -> None:
    assert need.why
    assert not need.without.endswith(".")
    assert consequence_without(need.feature, need.place, need.operation) == need.without


def test_a_permission_that_no_feature_needs_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        consequence_without(Feature.HEARTBEATS, ResourceKind.GROUPS, ALTER)


def test_permissions_that_can_be_done_without_say_when() -> None:
    copied = next(
        need for need in NEEDS if (need.place, need.operation) == (ResourceKind.COPIED, READ)
    )
    assert not copied.is_optional
    assert all(need.is_optional == bool(need.unless) for need in NEEDS)
