"""Numbers, durations and times as all views and commands write them.

Runs on: any machine. Pure.
"""

from __future__ import annotations

from datetime import UTC, datetime

_UNITS = ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))


def count(number: float) -> str:
    """`254,906`."""
    return f"{round(number):,}"


def counted(number: int, noun: str) -> str:
    """`1 partition`, `2 partitions`."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def short(number: float) -> str:
    """`274.6 k`, `15.4 M`; exact below 10,000."""
    for limit, divisor, unit in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if abs(number) >= limit:
            return f"{number / divisor:.1f} {unit}"
    return count(number)


def rate(bytes_per_second: float) -> str:
    """`41.8 MB/s`; decimal, two decimals below 1."""
    megabytes = bytes_per_second / 1e6
    if not bytes_per_second:
        return "0 MB/s"
    return f"{megabytes:.2f} MB/s" if megabytes < 1 else f"{megabytes:.1f} MB/s"


def duration(seconds: float) -> str:
    """`0.6 s`, `41 s`, `14 min 10 s`, `5 h 21 min`, `6 d 23 h`: at most two units."""
    if seconds <= 0:
        return "0 s"
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    for size, unit, smaller, name in _UNITS:
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size} {unit} {rest} {name}" if rest else f"{whole // size} {unit}"
    return f"{whole} s"


def clock(time_ms: float, now_ms: float | None = None) -> str:
    """`03:12:45 UTC`; of another day than `now_ms`, `4 Nov 09:12 UTC`."""
    when = datetime.fromtimestamp(time_ms / 1000, UTC)
    today = None if now_ms is None else datetime.fromtimestamp(now_ms / 1000, UTC).date()
    if today is not None and when.date() != today:
        return f"{when.day} {when:%b %H:%M} UTC"
    return f"{when:%H:%M:%S} UTC"


def names(found: list[str], most: int = 3) -> str:
    """A few of them in backticks, and how many more."""
    listed = ", ".join(f"`{name}`" for name in found[:most])
    more = len(found) - most
    return f"{listed} and {more} more" if more > 0 else listed
