"""A flow as an mm2 file makes it, for tests that need no cluster or a fake one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sparkmirror.config.mm2 import FlowConfig, MirrorMakerConfig, load_mm2

NOWHERE = ("127.0.0.1:1",)


def make_flow(
    folder: Path,
    settings: Mapping[str, str] | None = None,
    source: Sequence[str] = NOWHERE,
    target: Sequence[str] = NOWHERE,
) -> FlowConfig:
    """The flow a->b; `settings` are further lines of the file."""
    (flow,) = make_file(folder, settings, source, target).flows
    return flow


def make_file(
    folder: Path,
    settings: Mapping[str, str] | None = None,
    source: Sequence[str] = NOWHERE,
    target: Sequence[str] = NOWHERE,
) -> MirrorMakerConfig:
    """The whole file of that flow."""
    lines = {
        "clusters": "a, b",
        "a.bootstrap.servers": ",".join(source),
        "b.bootstrap.servers": ",".join(target),
        "a->b.enabled": "true",
        **(settings or {}),
    }
    path = folder / "mm2.properties"
    path.write_text("\n".join(f"{key} = {value}" for key, value in lines.items()))
    return load_mm2(path)
