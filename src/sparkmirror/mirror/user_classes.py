"""Loads the Python classes that settings name: policies and filters of the user's own.

Runs on: worker and executor.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sparkmirror.errors import ConfigError


def load_user_class(what: str, class_name: str, refuse: Callable[[str], ConfigError]) -> Any:
    """The class that `class_name`, written `module:Class`, names; it has a `from_settings` method.

    `what` is what it should be ("policy"); `refuse` makes the error for a reason.
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
    except Exception as exc:  # the user's code runs when it is imported: it may raise anything
        raise refuse(f"cannot be loaded: {type(exc).__name__}: {exc}") from exc
    if not (isinstance(loaded, type) and hasattr(loaded, "from_settings")):
        raise refuse("it is not a class with a from_settings method")
    return loaded


@contextmanager
def no_exit(refuse: Callable[[str], ConfigError]) -> Iterator[None]:
    """The user's code runs inside: if it calls sys.exit, that is an error, not the thread's end."""
    try:
        yield
    except SystemExit as exc:
        raise refuse(f"its code exits the program: SystemExit({exc.code!r})") from exc
