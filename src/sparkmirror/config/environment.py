"""A worker's settings from environment variables, as containers of Kafka Connect get them.

Mirrors: `env_to_props` of Confluent's images. CONNECT_OFFSET_STORAGE_TOPIC is offset.storage.topic:
the prefix is taken off, capitals become small, and underscores stand for other characters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from sparkmirror.errors import ConfigError

PREFIX = "CONNECT_"
# What stands for the file in messages.
WHERE = Path(f"environment variables {PREFIX}*")
# More underscores than these stay as they are.
MEANT = {"_": ".", "__": "_", "___": "-"}


def connect_properties(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings of a worker that has no file.

    Raises:
        ConfigError: no variable is for a worker.
    """
    found = {
        _key(name.removeprefix(PREFIX)): value
        for name, value in environment.items()
        if name.startswith(PREFIX) and name != PREFIX
    }
    if not found:
        reason = f"missing, and no environment variable begins with {PREFIX}"
        remedy = f"name a worker's file, or set {PREFIX}BOOTSTRAP_SERVERS and so on"
        raise ConfigError("FILE", None, reason, remedy)
    return found


def _key(name: str) -> str:
    return re.sub("_+", lambda run: MEANT.get(run[0], run[0]), name.lower())
