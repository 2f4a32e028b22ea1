"""Files that clients need to log in: key stores, keytabs, tokens, keys.

Runs on: executor and worker. Whoever reads such a file reads it here, because an executor on
another machine has none of them: the worker sends their bytes over the control link, and `provide`
lets them take the place of what is, or is not, on the executor's disk. They stay in memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from pathlib import Path
from threading import Lock

from sparkmirror.config.regular_files import read_regular_file

_provided: dict[str, bytes] = {}
_lock = Lock()


def read_file(path: str) -> bytes:
    """The bytes of the file. Raises OSError as `open` does, also for pipes and devices."""
    with _lock:
        data = _provided.get(path)
    return read_regular_file(path) if data is None else data


def stamp(path: str) -> Hashable:
    """Something that differs when the file does; None while there is none."""
    with _lock:
        data = _provided.get(path)
    if data is not None:
        return hashlib.sha256(data).digest()
    try:
        status = Path(path).stat()
    except OSError:
        return None
    # Kubernetes swaps a link to a folder: the path is another file then, perhaps of the same age.
    return status.st_mtime_ns, status.st_size, status.st_ino


def provide(path: str, data: bytes) -> None:
    """From now on the file is `data`, whatever the disk says."""
    with _lock:
        _provided[path] = data


def forget_provided() -> None:
    """The disk counts again."""
    with _lock:
        _provided.clear()
