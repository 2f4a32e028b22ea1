"""Reports the progress of a run: one line per step on stderr."""

from __future__ import annotations

import sys
import time

_STARTED_AT = time.monotonic()


def report(text: str) -> None:
    """Write one line, with the minutes and seconds since the start."""
    minutes, seconds = divmod(int(time.monotonic() - _STARTED_AT), 60)
    sys.stderr.write(f"{minutes:02d}:{seconds:02d}  {text}\n")
    sys.stderr.flush()
