"""Broker addresses: `host:port` as Kafka's clients read them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sparkmirror.config.config_def import BadValue

# An optional listener name, a name, IPv4 or bracketed IPv6 address, and a port.
ADDRESS = re.compile(r"(?:[0-9a-zA-Z\-._]+://)?(\[[0-9a-fA-F:.%]+\]|[0-9a-zA-Z\-._]+):([0-9]{1,5})")


def parse_addresses(items: Sequence[str]) -> tuple[str, ...]:
    """Each address as `host:port`. Raises BadValue for the first that is none."""
    return tuple(parse_address(item) for item in items)


def parse_address(text: str) -> str:
    """`host:port` without a listener name. Raises BadValue."""
    found = ADDRESS.fullmatch(text)
    if not found:
        raise BadValue(f"'{text}' is not host:port", f"write {_example(text)}")
    if not 0 < int(found[2]) < 65536:
        raise BadValue(f"'{text}' has no valid port", "use a port from 1 to 65535")
    return f"{found[1]}:{found[2]}"


def _example(text: str) -> str:
    plain_host = re.fullmatch(r"[0-9a-zA-Z\-._]+", text)
    return f"{text}:9092, with the port of the broker" if plain_host else "for example kafka1:9092"
