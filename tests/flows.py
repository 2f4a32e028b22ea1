"""A flow as an mm2 file makes it, for tests that need no cluster or a fake one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sparkmirror.config.mm2 import FlowConfig, load_mm2

NOWHERE = ("127.0.0.1:1",)


def make_flow(
    folder: Path,
    settings: Mapping[str, str] | None = None,
    source: Sequence[str] = NOWHERE,
    target: Sequence[str] = NOWHERE,
) -> FlowConfig:
    """The flow a->b; `settings` are further lines of the file."""
    lines = {
        "clusters": "a, b",
        "a.bootstrap.servers": ",".join(source),
        "b.bootstrap.servers": ",".join(target),
        "a->b.enabled": "true",
        **(settings or {}),
    }
    path = folder / "mm2.properties"
    path.write_text("\n".join(f"{key} = {value}" for key, value in lines.items()))
    (flow,) = load_mm2(path).flows
    return flow
