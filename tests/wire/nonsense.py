"""Reading bytes that may make no sense."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sparkmirror.errors import KafkaError

T = TypeVar("T")


def read(decode: Callable[[memoryview], T], data: bytes | bytearray) -> T | KafkaError:
    """What `decode` makes of it, or its error; anything but a KafkaError is a bug of ours."""
    try:
        return decode(memoryview(data))
    except KafkaError as error:
        return error
