"""Every key of every table reaches the code that acts on it, or is explained, or is refused.

For a key that has an effect there are two proofs, neither of which looks at a table:

1. another value in a real file changes some typed settings, and
2. code outside the config package reads just those settings when the program runs (`scenes`).

A key whose value goes nowhere fails the first, one that is only parsed fails the second. A key that
is explained or refused must say so, under the name that it has in the user's file.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sparkmirror import config
from sparkmirror.config.config_def import Definition, Key, KeySupport
from sparkmirror.config.keys.converter_keys import CONVERTER_DEFINITIONS
from sparkmirror.config.keys.not_yet import NOT_YET, status_of
from sparkmirror.config.keys.security_keys import SECURITY_KEYS
from sparkmirror.config.mm2 import MirrorMakerConfig
from sparkmirror.errors import ConfigErrors
from tests.every_key.places import PLACES, Load, Where, mm2, worker_file
from tests.every_key.proofs import PROOFS
from tests.every_key.recorder import Path as Place
from tests.every_key.recorder import Reads, leaves
from tests.every_key.scenes import play_mm2
from tests.every_key.values import COMPANIONS, other_value
from tests.every_key.worker_scenes import play_worker

EVERY_KEY = [
    pytest.param(
        where,
        key,
        id=f"{where.title}-{key.name}",
    )
    for where in PLACES
    for key in where.keys
]
HONOURED = [row for row in EVERY_KEY if status_of(row.values[1])[0] is KeySupport.HONOURED]  # type: ignore[arg-type]
TOLD = [row for row in EVERY_KEY if row not in HONOURED]


@pytest.fixture(scope="module")
def reads(tmp_path_factory: pytest.TempPathFactory) -> Mapping[Load, Reads]:
    """What the program reads, by kind of file."""
    folder = tmp_path_factory.mktemp("scenes")
    return {mm2: play_mm2(folder), worker_file: play_worker(folder)}


def typed(where: Where, props: Mapping[str, str], folder: Path) -> dict[Place, Any]:
    """The typed settings of a file; of an mm2 file those of its flow."""
    file = where.load(props, folder)
    return leaves(file.flows[0] if isinstance(file, MirrorMakerConfig) else file)


def changed_places(where: Where, key: Key, folder: Path) -> set[Place]:
    """Which typed settings another value of the key changes."""
    companions = COMPANIONS.get(key.name, {})
    before = typed(where, companions, folder)
    after = typed(where, companions | {where.prefix + key.name: other_value(key)}, folder)
    changed = {
        place for place in before.keys() | after.keys() if before.get(place) != after.get(place)
    }
    return {place for place in changed if where.root in ("", place[0])}


@pytest.mark.parametrize(("where", "key"), HONOURED)
def test_the_code_that_acts_on_a_key_reads_it(
    where: Where, key: Key, reads: Mapping[Load, Reads], tmp_path: Path
) -> None:
    changed = changed_places(where, key, tmp_path)
    assert changed, f"no typed setting changes when {where.prefix}{key.name} does"
    assert any(map(reads[where.load].has_read, changed)), f"nobody reads {sorted(changed)}"


@pytest.mark.parametrize(("where", "key"), TOLD)
def test_a_key_that_does_nothing_is_told(where: Where, key: Key, tmp_path: Path) -> None:
    name = f"{where.prefix}{key.name}"
    assert name in told(where, {name: asking_value(key)}, tmp_path)


def asking_value(key: Key) -> str:
    """A value that asks for what is not there yet."""
    rows = [row for row in NOT_YET if row.key == key.name]
    if not rows:
        return other_value(key)
    choices = [*key.one_of, "true", "mine"]
    return next(choice for choice in choices if rows[0].asks(key.parse(choice)))


def told(where: Where, props: Mapping[str, str], folder: Path) -> list[str]:
    """The keys that errors and warnings are about."""
    try:
        warnings = where.load(props, folder).warnings
    except ConfigErrors as errors:
        return [error.key for error in errors.errors]
    return [text.split(": ")[1] for text in warnings]


@pytest.mark.parametrize("name", PROOFS)
def test_the_config_package_acts_on_a_key(name: str, tmp_path: Path) -> None:
    PROOFS[name](tmp_path)


@pytest.mark.parametrize("part", ["key", "value", "header"])
@pytest.mark.parametrize(
    "key",
    [key for keys in CONVERTER_DEFINITIONS.values() for key in keys],
    ids=lambda key: key.name,
)
def test_a_setting_of_a_converter_is_told(key: Key, part: str, tmp_path: Path) -> None:
    for where, prefix in ((PLACES[0], "a->b."), (PLACES[0], "b."), (PLACES[-1], "")):
        name = f"{prefix}{part}.converter.{key.name}"
        assert name in told(where, {name: "x"}, tmp_path)


# -- the test itself -------------------------------------------------------------------------------


def test_a_key_that_is_only_parsed_fails(
    monkeypatch: pytest.MonkeyPatch, reads: Mapping[Load, Reads], tmp_path: Path
) -> None:
    """Take one field's readers away: the proof must notice."""
    where = next(where for where in PLACES if where.title == "producer")
    key = where.keys["delivery.timeout.ms"]
    changed = changed_places(where, key, tmp_path)
    assert any(map(reads[mm2].has_read, changed))
    monkeypatch.setattr(reads[mm2], "paths", reads[mm2].paths - changed)
    assert not any(map(reads[mm2].has_read, changed))


def test_every_table_of_keys_has_a_place() -> None:
    """Each `*_KEYS` table of the config package is part of what is proven here."""
    proven = {key.name for where in PLACES for key in where.keys} | PROOFS.keys()
    proven |= {key.name for key in SECURITY_KEYS}
    proven |= {key.name for keys in CONVERTER_DEFINITIONS.values() for key in keys}
    assert {name for name in _all_keys() if name not in proven} == set()


def _all_keys() -> set[str]:
    found: set[str] = set()
    for module in pkgutil.iter_modules(config.__path__):
        parts = vars(importlib.import_module(f"{config.__name__}.{module.name}")).values()
        found |= {key.name for part in parts if isinstance(part, Definition) for key in part}
    return found
