"""Cells of tables: numbers as the page writes them, `unknown` and `-` where there are none.

Runs on: any machine. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sparkmirror.monitoring.views.wording.words import count, duration, rate

UNKNOWN, NONE = "unknown", "-"
Row = Mapping[str, Any]
_BARS = "▁▂▃▄▅▆▇█"


def cell(row: Row, name: str, write: Callable[[Any], str] = count) -> str:
    """The value, else whether it is not known or does not exist."""
    value = row[name]
    if value is not None:
        return write(value)
    return UNKNOWN if name in row.get("unknown", {}) else NONE


def seconds(row: Row, name: str = "seconds_behind") -> str:
    """A duration."""
    return cell(row, name, duration)


def speed(row: Row, name: str = "bytes_per_second") -> str:
    """A rate."""
    return cell(row, name, rate)


def plain(text: str) -> str:
    """Without the backticks that the page shows as another font."""
    return text.replace("`", "")


def sparkline(values: Sequence[float | None], width: int) -> str:
    """The newest values, a gap where there is none; 0 is the lowest bar."""
    newest = values[-width:]
    most = max((value for value in newest if value is not None), default=0.0)
    bars = [_bar(value, most) for value in newest]
    return "".join(bars).rjust(width)


def _bar(value: float | None, most: float) -> str:
    if value is None:
        return " "
    at = round(value / most * (len(_BARS) - 1)) if most > 0 else 0
    return _BARS[at]
