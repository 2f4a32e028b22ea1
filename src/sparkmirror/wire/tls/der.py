"""Reads DER, the binary form of ASN.1, one element after the other. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

INTEGER, OCTETS, OID, SEQUENCE, SET = 0x02, 0x04, 0x06, 0x30, 0x31
# [0] around an element, and [0] in the place of an element's own tag.
EXPLICIT_0, IMPLICIT_0 = 0xA0, 0x80
_MOST_LENGTH_BYTES = 4


class BadDer(ValueError):
    """The bytes are not what was expected."""


class Element(NamedTuple):
    """A tag and what is behind it."""

    tag: int
    content: bytes

    def of(self, tag: int) -> bytes:
        """The content, if it is one of these."""
        if self.tag != tag:
            raise BadDer(f"there is an element {self.tag:#04x} in the place of {tag:#04x}")
        return self.content

    def parts(self, tag: int = SEQUENCE) -> list[Element]:
        """The elements that one of these consists of."""
        return list(elements(self.of(tag)))

    def number(self) -> int:
        """The value of an INTEGER that is not negative."""
        return int.from_bytes(self.of(INTEGER), "big")

    def name(self) -> str:
        """An object identifier as people write it, 1.2.840..."""
        content = self.of(OID)
        if not content or content[-1] & 0x80:
            raise BadDer("an object identifier is cut")
        numbers, value = [], 0
        for byte in content:
            value = value << 7 | byte & 0x7F
            if not byte & 0x80:
                numbers.append(value)
                value = 0
        first = min(numbers[0] // 40, 2)
        return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def element(data: bytes) -> Element:
    """The only element of `data`."""
    found = list(elements(data))
    if len(found) != 1:
        raise BadDer(f"there are {len(found)} elements in the place of one")
    return found[0]


def elements(data: bytes) -> Iterator[Element]:
    """All elements of `data`."""
    at = 0
    while at < len(data):
        tag, size, at = _head(data, at)
        if at + size > len(data):
            raise BadDer("an element is cut")
        yield Element(tag, data[at : at + size])
        at += size


def _head(data: bytes, at: int) -> tuple[int, int, int]:
    """The tag, how many bytes follow, and where they begin."""
    if at + 2 > len(data):
        raise BadDer("an element is cut")
    tag, size = data[at], data[at + 1]
    at += 2
    if size & 0x80:
        count = size & 0x7F
        if not 0 < count <= _MOST_LENGTH_BYTES or at + count > len(data):
            raise BadDer("an element has no length that can be read")
        size = int.from_bytes(data[at : at + count], "big")
        at += count
    return tag, size, at
