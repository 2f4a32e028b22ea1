"""Names of cipher suites: Java writes them as IANA does, OpenSSL has its own.

Runs on: executor and worker. The suites of TLS 1.3 have one name everywhere, and Python before 3.15
has no way to choose among them: a `SuiteContext` checks the one that was agreed on instead.
"""

from __future__ import annotations

import re
import ssl

TLS13 = frozenset(
    (
        "TLS_AES_256_GCM_SHA384",
        "TLS_AES_128_GCM_SHA256",
        "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_AES_128_CCM_SHA256",
        "TLS_AES_128_CCM_8_SHA256",
    )
)

# TLS_<key exchange>_WITH_<cipher>_<hash>; old Java wrote SSL_ in front.
_IANA = re.compile(r"(?:TLS|SSL)_(\w+?)_WITH_(\w+)")
_SIZED = re.compile(r"^(AES|CAMELLIA|ARIA)_(\d+)")


def openssl_name(suite: str) -> str:
    """What OpenSSL calls a suite of TLS 1.2 or older; names that it may know itself are kept."""
    found = _IANA.fullmatch(suite)
    if found is None:
        return suite
    exchange, cipher = found.groups()
    # Plain RSA key exchange is not named, and CBC is the default mode of a block cipher.
    parts = [] if exchange == "RSA" else [exchange]
    cipher = _SIZED.sub(r"\1\2", cipher).replace("_CBC", "")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    cipher = cipher.replace("3DES_EDE", "DES_CBC3").replace("CCM_8", "CCM8")
    if cipher.startswith("ARIA") and exchange == "ECDHE_RSA":
        parts = ["ECDHE"]
    return "-".join((*parts, cipher)).replace("_", "-")


class SuiteRefused(ssl.SSLError):
    """The suite that was agreed on is one of TLS 1.3 that the settings do not have."""

    def __init__(self, suite: str) -> None:
        super().__init__(0, f"the suite {suite} is not in ssl.cipher.suites")
        self.suite = suite


class SuiteContext(ssl.SSLContext):
    """A context all of whose connections end up with a suite that is allowed.

    `suites13` are the suites of TLS 1.3 that may be used; empty means all.
    """

    suites13: frozenset[str] = frozenset()

    def check(self, made: ssl.SSLSocket | ssl.SSLObject) -> None:
        """Raise SuiteRefused for a connection whose handshake is over."""
        suite, version, _ = made.cipher() or ("", "", 0)
        if version == "TLSv1.3" and self.suites13 and suite not in self.suites13:
            raise SuiteRefused(suite)


class _SuiteSocket(ssl.SSLSocket):
    def do_handshake(self, block: bool = False) -> None:
        super().do_handshake(block)
        _check(self)


class _SuiteObject(ssl.SSLObject):
    def do_handshake(self) -> None:
        super().do_handshake()
        _check(self)


def _check(made: ssl.SSLSocket | ssl.SSLObject) -> None:
    if isinstance(made.context, SuiteContext):
        made.context.check(made)


SuiteContext.sslsocket_class = _SuiteSocket
SuiteContext.sslobject_class = _SuiteObject
