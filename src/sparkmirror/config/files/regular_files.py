"""Reads files that settings name, perhaps those of a user who may only create connectors.

Rejects devices and pipes: reading one could block a thread for ever.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

# Key stores, keytabs, tokens and files of secrets have some kilobytes.
MOST_BYTES = 16 * 1024 * 1024


def read_regular_file(path: str | Path) -> bytes:
    """The bytes of the file. Raises OSError as `open` does, also if it is not a regular file."""
    # Without O_NONBLOCK, opening a pipe waits for its writer.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"larger than {MOST_BYTES >> 20} MiB", str(path))
    return data
