"""What to do about an unknown class in a connector's settings.

The REST API rejects it in Connect's words, "Class x could not be found.", which do not explain that
Java classes can never be found here. The worker's log does. Values are not shown: they may come
from a config provider.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sparkmirror.config.config_def import BadValue, Key
from sparkmirror.config.keys.connector_keys import MIRROR_KEYS
from sparkmirror.config.validation.validators import CONVERTER_KEYS, NO_CLASS

OF_CONVERTERS = (
    "there are no Java plugins to load; leave it out, because records are copied byte for byte, "
    "without a converter"
)
OF_CONNECTORS = (
    "connector.class: only MirrorMaker 2's three connectors run here, and Java plugins cannot be "
    "loaded: MirrorSourceConnector, MirrorCheckpointConnector, MirrorHeartbeatConnector"
)


def class_hints(errors: Mapping[str, list[str]]) -> Iterator[str]:
    """A line for each key whose class could not be found according to its errors."""
    for name, texts in errors.items():
        if not any(text.endswith(NO_CLASS) for text in texts):
            continue
        if name in CONVERTER_KEYS:
            yield f"{name}: {OF_CONVERTERS}"
        elif name in MIRROR_KEYS and (hint := _hint(MIRROR_KEYS[name])):
            yield f"{name}: {hint}"


def _hint(key: Key) -> str:
    """The key's message for an unknown class."""
    try:
        if key.convert is not None:
            key.convert("no.such.Class")
    except BadValue as bad:
        return f"{bad.reason}; {bad.remedy}"
    return ""
