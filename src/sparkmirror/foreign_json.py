"""JSON that other programs and users wrote: topics, responses, tokens, files.

Runs on: worker, executor and commands.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sparkmirror.errors import ConfigError


def parse_json(text: str | bytes) -> Any:
    """The value; ValueError for whatever is none.

    Python has another error for text that is nested too deeply, and those who read foreign JSON
    would forget it.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError(str(error)) from error


def read_json_object(path: Path) -> tuple[str, dict[str, Any]]:
    """The text of a user's file, and the JSON object that it is.

    Raises:
        ConfigError: it cannot be read, or is something else.
    """
    try:
        text = path.read_text("utf-8-sig")
        members = parse_json(text)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("", None, f"cannot be read: {error}", where=str(path)) from error
    except ValueError as error:
        raise ConfigError("", None, f"no JSON: {error}", where=str(path)) from error
    if not isinstance(members, dict):
        raise ConfigError("", None, "no JSON object", "write the settings as {...}", str(path))
    return text, members
