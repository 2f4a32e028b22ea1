"""Which certificates of a PKCS12 store Java trusts: the bags inside it, with their attributes.

    PFX                version 3 | ContentInfo data { AuthenticatedSafe } | MAC
    AuthenticatedSafe  ContentInfo, ...: data { SafeContents }, or encryptedData { version |
                       data | algorithm | SafeContents, encrypted }
    SafeContents       SafeBag, ...: kind | [0] value | attributes: SET of (name | SET of values)
    certificate bag    x509Certificate | [0] DER

Runs on: executor and worker. Java takes a certificate for a trusted entry only if its bag has the
attribute trustedKeyUsage; the others complete the chains of keys. Of those its trust managers take
the first one of each chain. `cryptography` reads stores, but not their attributes; it has
checked the password and the MAC before this is called.
Mirrors: sun.security.pkcs12.PKCS12KeyStore (17), RFC 7292.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sparkmirror.wire.tls.der import (
    EXPLICIT_0,
    IMPLICIT_0,
    OCTETS,
    SET,
    BadDer,
    Element,
    element,
    elements,
)
from sparkmirror.wire.tls.pkcs12_ciphers import decrypt

_DATA = "1.2.840.113549.1.7.1"
_ENCRYPTED_DATA = "1.2.840.113549.1.7.6"
_KEY_BAGS = ("1.2.840.113549.1.12.10.1.1", "1.2.840.113549.1.12.10.1.2")
_CERTIFICATE_BAG = "1.2.840.113549.1.12.10.1.3"
_X509 = "1.2.840.113549.1.9.22.1"
_LOCAL_KEY_ID = "1.2.840.113549.1.9.21"
_TRUSTED_KEY_USAGE = "2.16.840.1.113894.746875.1.1"


@dataclass(frozen=True, slots=True)
class _Bag:
    """`certificate` is in DER, None of other things; `key_id` links what belongs together."""

    kind: str
    certificate: bytes | None
    key_id: bytes | None
    is_trusted: bool


def trusted_certificates(data: bytes, password: str | None) -> tuple[bytes, ...]:
    """The certificates, in DER, that Java would trust if this were its trust store.

    Raises:
        BadDer, UnknownCipher: it is not as Java writes it.
    """
    bags = list(_bags(data, password))
    keys = [bag for bag in bags if bag.kind in _KEY_BAGS]
    key_ids = {bag.key_id for bag in keys if bag.key_id is not None}
    certificates = [bag for bag in bags if bag.certificate is not None]
    found = [bag for bag in certificates if bag.is_trusted or bag.key_id in key_ids]
    # Stores of one key may do without ids: the first certificate is the key's own.
    if len(keys) == 1 and not key_ids and certificates and certificates[0] not in found:
        found.insert(0, certificates[0])
    return tuple(dict.fromkeys(bag.certificate for bag in found if bag.certificate is not None))


def _bags(data: bytes, password: str | None) -> Iterator[_Bag]:
    parts = element(data).parts()
    if len(parts) < 2:
        raise BadDer("a store has no content")
    for info in element(_plain(parts[1])).parts():
        content = _content(info, password)
        if content is not None:
            yield from map(_bag, element(content).parts())


def _plain(info: Element) -> bytes:
    content = _content(info, None)
    if content is None:
        raise BadDer("a store is signed by a key, not by a password")
    return content


def _content(info: Element, password: str | None) -> bytes | None:
    """What a ContentInfo holds; None if it is neither plain nor encrypted by a password."""
    kind, value = _two(info.parts())
    inner = element(value.of(EXPLICIT_0))
    if kind.name() == _DATA:
        return inner.of(OCTETS)
    if kind.name() != _ENCRYPTED_DATA:
        return None
    _, encrypted = _two(inner.parts())
    parts = encrypted.parts()
    if len(parts) != 3:
        raise BadDer("an encrypted part is incomplete")
    return decrypt(parts[1], parts[2].of(IMPLICIT_0), password or "")


def _bag(bag: Element) -> _Bag:
    parts = bag.parts()
    kind, value = _two(parts)
    attributes = dict(_attributes(parts[2])) if len(parts) > 2 else {}
    return _Bag(
        kind.name(),
        _certificate(value) if kind.name() == _CERTIFICATE_BAG else None,
        attributes.get(_LOCAL_KEY_ID),
        is_trusted=_TRUSTED_KEY_USAGE in attributes,
    )


def _certificate(value: Element) -> bytes | None:
    """The certificate of a bag; None if it is not of X.509."""
    form, wrapped = _two(element(value.of(EXPLICIT_0)).parts())
    return element(wrapped.of(EXPLICIT_0)).of(OCTETS) if form.name() == _X509 else None


def _attributes(found: Element) -> Iterator[tuple[str, bytes]]:
    """Names and the first value of each, as it is encoded."""
    for attribute in found.parts(SET):
        name, values = _two(attribute.parts())
        first = next(elements(values.of(SET)), None)
        yield name.name(), b"" if first is None else first.content


def _two(parts: list[Element]) -> tuple[Element, Element]:
    if len(parts) < 2:
        raise BadDer("an element has too few parts")
    return parts[0], parts[1]
