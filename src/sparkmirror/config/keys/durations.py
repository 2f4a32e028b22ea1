"""Durations as Java writes them: `P1DT12H`, `PT15M`, `PT1.5S`.

Mirrors: java.time.Duration.parse, without negative durations.
"""

from __future__ import annotations

import re

from sparkmirror.config.config_def import BadValue

_PART = r"(?:([-+]?[0-9]{1,18})%s)?"
DURATION = re.compile(
    rf"([-+]?)P{_PART % 'D'}"
    rf"(T{_PART % 'H'}{_PART % 'M'}(?:([-+]?[0-9]{{1,18}})(?:[.,]([0-9]{{0,9}}))?S)?)?",
    re.ASCII | re.IGNORECASE,
)
DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS = 86_400_000, 3_600_000, 60_000, 1000


def parse_duration_ms(text: str) -> int:
    """Milliseconds of an ISO 8601 duration. Raises BadValue."""
    found = DURATION.fullmatch(text)
    if found is None or not any(found.group(2, 4, 5, 6)) or (found[3] or "").upper() == "T":
        raise BadValue(
            f"'{text}' is not an ISO 8601 duration", "use one such as PT6H, P7D or P1DT12H30M"
        )
    days, hours, minutes, seconds = (int(part or 0) for part in found.group(2, 4, 5, 6))
    fraction = int((found[7] or "").ljust(3, "0")[:3])
    if (found[6] or "").startswith("-"):
        fraction = -fraction
    total = days * DAY_MS + hours * HOUR_MS + minutes * MINUTE_MS + seconds * SECOND_MS + fraction
    total = -total if found[1] == "-" else total
    if total < 0:
        raise BadValue(f"'{text}' is negative", "use one such as PT6H")
    return total
