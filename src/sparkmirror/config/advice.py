"""Advice about keys of an mm2 file that MirrorMaker 2 would drop without a word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sparkmirror.config.findings import Findings


def advise(props: Mapping[str, str], aliases: Sequence[str], findings: Findings) -> None:
    """Warn."""
