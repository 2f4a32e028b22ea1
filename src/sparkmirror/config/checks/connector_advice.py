"""Advice about keys of a connector's settings that neither we nor Kafka Connect know.

Kafka Connect silently drops such keys, so a connector with `topcs` mirrors the default topics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from sparkmirror.config.checks.advice import (
    CONVERTER_PREFIXES,
    FLOW_PREFIXES,
    REMOVED,
    ROLES_OF_SIDE,
    UNKNOWN,
    removed_key,
    split_client,
    without_effect,
)
from sparkmirror.config.clients import CLUSTER_KEYS, OVERRIDE
from sparkmirror.config.files.providers import CONFIG_PROVIDERS
from sparkmirror.config.keys.classes import PYTHON_CLASS
from sparkmirror.config.keys.client_keys import CLIENT_KEYS, COMMON_CLIENT_KEYS
from sparkmirror.config.keys.connector_keys import FRAMEWORK_KEYS, MIRROR_KEYS
from sparkmirror.config.worker_config import WORKER_KEYS

KNOWN_KEYS = MIRROR_KEYS + FRAMEWORK_KEYS
# Keys with these prefixes belong to the user's own plugins.
OPEN_PREFIXES = (*FLOW_PREFIXES, *CONVERTER_PREFIXES, f"{CONFIG_PROVIDERS}.")
# The keys that may follow each prefix of a client; the longest prefix of a key counts.
_CLIENT_PREFIXES: Mapping[str, Iterable[str]] = {
    **{f"{side}.cluster.": CLUSTER_KEYS for side in ("source", "target")},
    **{
        f"{side}{role}.": keys.names
        for side in ("", "source.", "target.")
        for role, keys in CLIENT_KEYS.items()
    },
    **{f"{role}.{OVERRIDE}": keys.names for role, keys in CLIENT_KEYS.items()},
}


# These producers write offset syncs and take only the keys of every client.
SYNCS_PRODUCERS = ("producer.", "source.producer.", "target.producer.")
# Keys for reading and writing records, as opposed to reaching a cluster.
_OF_RECORDS = {
    role: frozenset(keys.names) - frozenset(COMMON_CLIENT_KEYS.names)
    for role, keys in CLIENT_KEYS.items()
}
# Connect gives a source connector no consumer, and an admin client only to create its topics.
SINK_OVERRIDES = (f"consumer.{OVERRIDE}", f"admin.{OVERRIDE}")


@dataclass(frozen=True, slots=True)
class KeyAdvice:
    """A key that does nothing; `meant` is the known one that looks like it."""

    key: str
    text: str
    meant: str = ""


def advise_connector(props: Mapping[str, str | None]) -> Iterator[KeyAdvice]:
    """Every key that does nothing, except those that a class of the user's own may read.

    Kafka's `REMOVED` keys have no `meant`: the text names their replacement.
    """
    has_own_classes = any(
        key.endswith(".class") and PYTHON_CLASS.fullmatch(value or "")
        for key, value in props.items()
    )
    for key in props:
        advice = _advise(key)
        if advice is not None and (advice.text != UNKNOWN or not has_own_classes):
            yield advice


def _other_client(prefix: str, name: str) -> str | None:
    """Why a setting does not reach the client that it seems to be for."""
    if prefix in SINK_OVERRIDES:
        instead = prefix.removesuffix(OVERRIDE) + name
        return f"has no effect: it applies to sink connectors, as in Kafka Connect; write {instead}"
    if prefix in SYNCS_PRODUCERS and name in _OF_RECORDS["producer"]:
        instead = f"producer.{OVERRIDE}{name}"
        return f"does not affect the records' producer, as in MirrorMaker 2; write {instead}"
    if prefix == "target.consumer." and name in _OF_RECORDS["consumer"]:
        return f"has no effect: records are read from the source; write source.consumer.{name}"
    return None


def _of_other_place(prefix: str, name: str) -> str | None:
    """Where a key works that MirrorMaker 2 drops in this place."""
    if spellings := _spellings(prefix, name):
        return f"ignored here, as in MirrorMaker 2; write {' or '.join(spellings)}"
    if not prefix and name in WORKER_KEYS:
        return "ignored here, as in Kafka Connect: it is a setting of the worker's file"
    return None


def _spellings(prefix: str, name: str) -> list[str]:
    side, role, _ = split_client(prefix)
    if role in CLIENT_KEYS:  # source.consumer.override.X
        plain = name.removeprefix(OVERRIDE)
        return [_spelling(side, role, plain)] if name != plain in CLIENT_KEYS[role] else []
    _, role, rest = split_client(name)
    if role in CLIENT_KEYS:  # source.cluster.consumer.X
        return [_spelling(side, role, rest)] if rest in CLIENT_KEYS[role] else []
    roles = ROLES_OF_SIDE[side] if side else ("consumer", "producer")
    return [_spelling(side, role, name) for role in roles if name in CLIENT_KEYS[role]]


def _spelling(side: str, role: str, name: str) -> str:
    """The key of a client's setting; records are read from the source, written to the target."""
    if role == "producer":
        return f"producer.{OVERRIDE}{name}"
    return f"{side or 'source'}.{role}.{name}"


def _advise(key: str) -> KeyAdvice | None:
    if key in REMOVED:
        return KeyAdvice(key, removed_key(key))
    prefix = max((each for each in _CLIENT_PREFIXES if key.startswith(each)), key=len, default="")
    if key in KNOWN_KEYS or (key.startswith(OPEN_PREFIXES) and not prefix):
        return None
    name = key.removeprefix(prefix)
    known = list(_CLIENT_PREFIXES[prefix] if prefix else KNOWN_KEYS.names)
    elsewhere = None if name in known else _of_other_place(prefix, name)
    if text := _other_client(prefix, name) or elsewhere:
        return KeyAdvice(key, without_effect(key) or text)
    if name in known:
        return None
    close = get_close_matches(name, known, 1, 0.8)
    if not close:
        return KeyAdvice(key, UNKNOWN)
    meant = f"{prefix}{close[0]}"
    return KeyAdvice(key, f"{UNKNOWN}; did you mean {meant}?", meant)
