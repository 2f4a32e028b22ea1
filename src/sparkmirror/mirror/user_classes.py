"""Loads the Python classes that settings name: the user's own policies and filters.

Runs on: worker and executor.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sparkmirror.errors import ConfigError


def load_user_class(what: str, class_name: str, refuse: Callable[[str], ConfigError]) -> Any:
    """Load the class `module:Class`, which must have a `from_settings` method.

    `what` describes it in messages ("policy"); `refuse` makes the error for a reason.
    """
    module_name, colon, name = class_name.partition(":")
    if not colon:
        raise refuse(f"unknown {what}; Java classes cannot be loaded")
    if not all(part.isidentifier() for part in (*module_name.split("."), name)):
        raise refuse("not of the form module:Class")
    try:
        with no_exit(refuse):
            loaded = getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError) as exc:
        raise refuse(f"cannot be loaded: {exc}") from exc
    except ConfigError:
        raise
    except Exception as exc:  # importing runs the user's code, which may raise anything
        raise refuse(f"cannot be loaded: {type(exc).__name__}: {exc}") from exc
    if not (isinstance(loaded, type) and hasattr(loaded, "from_settings")):
        raise refuse("it is not a class with a from_settings method")
    return loaded


@contextmanager
def no_exit(refuse: Callable[[str], ConfigError]) -> Iterator[None]:
    """Run the user's code in the block; if it calls sys.exit, raise an error instead."""
    try:
        yield
    except SystemExit as exc:
        raise refuse(f"its code exits the program: SystemExit({exc.code!r})") from exc
