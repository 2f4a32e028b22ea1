"""Advice about keys of a connector's settings that neither we nor Kafka Connect know.

Kafka Connect drops such keys without a word, so that `topcs` mirrors the default topics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from sparkmirror.config.advice import (
    CONVERTER_PREFIXES,
    FLOW_PREFIXES,
    REMOVED,
    UNKNOWN,
    removed_key,
)
from sparkmirror.config.classes import PYTHON_CLASS
from sparkmirror.config.client_keys import CLIENT_KEYS
from sparkmirror.config.clients import CLUSTER_KEYS, OVERRIDE
from sparkmirror.config.connector_keys import FRAMEWORK_KEYS, MIRROR_KEYS
from sparkmirror.config.providers import CONFIG_PROVIDERS

KNOWN_KEYS = MIRROR_KEYS + FRAMEWORK_KEYS
# Below these, keys are those of the user's own parts.
OPEN_PREFIXES = (*FLOW_PREFIXES, *CONVERTER_PREFIXES, f"{CONFIG_PROVIDERS}.")
# What may follow each prefix of a client; the longest prefix of a key counts.
_CLIENT_PREFIXES: Mapping[str, Iterable[str]] = {
    **{f"{side}.cluster.": CLUSTER_KEYS for side in ("source", "target")},
    **{
        f"{side}{role}.{override}": keys.names
        for side in ("", "source.", "target.")
        for role, keys in CLIENT_KEYS.items()
        for override in ("", OVERRIDE)
    },
}


# Connect gives a source connector no consumer; an admin client only to create topics for it.
SINK_OVERRIDES = (f"consumer.{OVERRIDE}", f"admin.{OVERRIDE}")


@dataclass(frozen=True, slots=True)
class KeyAdvice:
    """A key that does nothing; `meant` is the known one that looks like it."""

    key: str
    text: str
    meant: str = ""


def advise_connector(props: Mapping[str, str | None]) -> Iterator[KeyAdvice]:
    """Every key that does nothing. Those that only a class of the user's own can know are left out.

    Kafka's `REMOVED` keys have no `meant`: what stands for them is in the text.
    """
    has_own_classes = any(
        key.endswith(".class") and PYTHON_CLASS.fullmatch(value or "")
        for key, value in props.items()
    )
    for key in props:
        advice = _advise(key)
        if advice is not None and (advice.text != UNKNOWN or not has_own_classes):
            yield advice


def _for_sinks(instead: str) -> str:
    return f"has no effect: it is for sink connectors, as in Kafka Connect; write {instead}"


def _advise(key: str) -> KeyAdvice | None:
    if key in REMOVED:
        return KeyAdvice(key, removed_key(key))
    prefix = max((each for each in _CLIENT_PREFIXES if key.startswith(each)), key=len, default="")
    if key in KNOWN_KEYS or (key.startswith(OPEN_PREFIXES) and not prefix):
        return None
    name = key.removeprefix(prefix)
    if prefix in SINK_OVERRIDES:
        return KeyAdvice(key, _for_sinks(prefix.removesuffix(OVERRIDE) + name))
    known = list(_CLIENT_PREFIXES[prefix] if prefix else KNOWN_KEYS.names)
    if name in known:
        return None
    close = get_close_matches(name, known, 1, 0.8)
    if not close:
        return KeyAdvice(key, UNKNOWN)
    meant = f"{prefix}{close[0]}"
    return KeyAdvice(key, f"{UNKNOWN}; is {meant} meant?", meant)
