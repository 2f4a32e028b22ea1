"""Files that clients need to log in: key stores, keytabs, tokens, keys.

Runs on: executor and worker. Such files are only read here, because an executor on another
machine has none of them: the worker sends their bytes over the control link, and `provide`
lets them take the place of what is, or is not, on the executor's disk. They stay in memory until
`forget_provided`, also for libraries that can read files only: those get the path of a descriptor
(memfd_create), which goes with the process however that ends. Where a system has no such thing, a
file that only its owner can read is removed by `forget_provided`.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Hashable
from pathlib import Path
from threading import Lock

from sparkmirror.config.files.regular_files import read_regular_file

_provided: dict[str, bytes] = {}
# By content: what libraries read in the place of a file, and how to get rid of it.
_copies: dict[bytes, tuple[str, Callable[[], None]]] = {}
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
    """From now on the file is `data`, whatever is on disk."""
    with _lock:
        _provided[path] = data


def path_of(path: str) -> str:
    """A path by which a library of this process can open the file. Raises OSError."""
    with _lock:
        data = _provided.get(path)
        if data is None:
            read_regular_file(path)
            return path
        if data not in _copies:
            _copies[data] = _copy(data)
        return _copies[data][0]


def forget_provided() -> None:
    """The task has ended: forget what was provided, and read from disk again."""
    with _lock:
        _provided.clear()
        copies = list(_copies.values())
        _copies.clear()
    for _, remove in copies:
        remove()


def _copy(data: bytes) -> tuple[str, Callable[[], None]]:
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("secret", os.MFD_CLOEXEC)
        path = f"/proc/self/fd/{descriptor}"
        if Path(path).exists():
            os.write(descriptor, data)
            return path, lambda: os.close(descriptor)
        os.close(descriptor)  # a container without /proc
    handle, path = tempfile.mkstemp(prefix="sparkmirror-")  # mode 600
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    return path, lambda: Path(path).unlink(missing_ok=True)
