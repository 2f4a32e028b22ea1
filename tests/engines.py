"""Mirrors as processes, in tests that are not about how soon they stop."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sparkmirror.demo.mirror_process import ENGINES, MirrorProcess

# On a machine that does a lot beside; tests/kafka/test_stopping.py keeps to what is promised.
_STOP_SECONDS = 60.0


def mirror_process(engine: str, file: Path) -> MirrorProcess:
    """A mirror that is not started; `file` is its mm2.properties."""
    patient = replace(ENGINES[engine], stop_seconds=_STOP_SECONDS)
    return MirrorProcess(patient, file, detached=False)
