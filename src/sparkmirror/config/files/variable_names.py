"""Names of environment variables and the keys that they set, in both directions: pure.

`CONNECT_OFFSET_STORAGE_TOPIC` sets `offset.storage.topic`. Messages show both, as
`CONNECT_OFFSET_STORAGE_TOPIC (offset.storage.topic)`.

Mirrors: the behaviour of `env_to_props` and `ub` in Confluent's images. Confluent's documentation
swaps two and three underscores.
"""

from __future__ import annotations

import re

PREFIX = "CONNECT_"
_SINGLE = re.compile("(?<!_)_(?!_)")
_SPELLED = {".": "_", "_": "__", "-": "___"}
_SHOWN = re.compile(r"\S+ \((.+)\)")


def key_of(name: str) -> str:
    """The key that the variable `name` sets. Confluent defines at most three underscores."""
    dotted = _SINGLE.sub(".", name.removeprefix(PREFIX).lower())
    return dotted.replace("___", "-").replace("__", "_")


def variable_of(key: str) -> str:
    """The variable that sets `key`."""
    return PREFIX + "".join(_SPELLED.get(character, character.upper()) for character in key)


def shown(key: str, name: str | None = None) -> str:
    """The name of `key` in messages, if the variable `name` sets it."""
    return f"{name or variable_of(key)} ({key})"


def beside(place: str, key: str, other: str) -> str:
    """The place of `other` for a user who sets `key` at `place`: under the same prefixes.

    `place` is a key of a file, or a result of `shown`.
    """
    found = _SHOWN.fullmatch(place)
    full = found[1] if found else place
    result = f"{full.removesuffix(key)}{other}"
    return shown(result) if found else result
