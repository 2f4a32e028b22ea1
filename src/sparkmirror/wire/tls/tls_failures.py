"""Why TLS with a broker failed, in one line for people: the cause, and what to do about it.

Runs on: executor and worker. Callers add cluster and broker address.
"""

from __future__ import annotations

import ssl

from sparkmirror.errors import AuthenticationError, KafkaError, TransportError

# OpenSSL's codes for why a certificate was rejected (openssl/x509_vfy.h).
_EXPIRED, _NOT_YET_VALID = 10, 9
_SELF_SIGNED, _SELF_SIGNED_IN_CHAIN, _NO_ISSUER, _NO_FIRST_ISSUER, _ONLY_LEAF = 18, 19, 20, 2, 21
_HOST_MISMATCH, _IP_MISMATCH = 62, 64
_WEAK_KEY, _WEAK_CA_KEY, _WEAK_SIGNATURE = 66, 67, 68
_UNKNOWN_CA = (
    "the broker's certificate is signed by no CA that we trust",
    "put its CA certificate into the trust store (ssl.truststore.location)",
)
_WRONG_NAME = (
    "the broker's certificate is for another host name than the one we connect to",
    "use a name of the certificate in bootstrap.servers and the broker's advertised.listeners",
)
_TOO_WEAK = (
    "the broker's certificate, or one above it, has a key or signature that is too weak",
    "renew it (RSA 2048, SHA-256); until then ssl.cipher.suites=DEFAULT@SECLEVEL=0 accepts it",
)
_REFUSED_BY_US = {
    _EXPIRED: ("the broker's certificate has expired", "renew it, and check this machine's clock"),
    _NOT_YET_VALID: ("the broker's certificate is not valid yet", "check this machine's clock"),
    _SELF_SIGNED: _UNKNOWN_CA,
    _SELF_SIGNED_IN_CHAIN: _UNKNOWN_CA,
    _NO_ISSUER: _UNKNOWN_CA,
    _NO_FIRST_ISSUER: _UNKNOWN_CA,
    _ONLY_LEAF: _UNKNOWN_CA,
    _WEAK_KEY: _TOO_WEAK,
    _WEAK_CA_KEY: _TOO_WEAK,
    _WEAK_SIGNATURE: _TOO_WEAK,
    _HOST_MISMATCH: _WRONG_NAME,
    _IP_MISMATCH: _WRONG_NAME,
}

_NEEDS_CERTIFICATE = (
    "the broker wants a client certificate",
    "set ssl.keystore.location to a store with one that it accepts",
)
_REFUSED_CERTIFICATE = (
    "the broker does not accept our client certificate",
    "check that the broker trusts its CA (ssl.keystore.location)",
)
# Alerts that the broker sent, by OpenSSL's names.
_REFUSED_BY_BROKER = {
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": _NEEDS_CERTIFICATE,
    "SSLV3_ALERT_BAD_CERTIFICATE": _REFUSED_CERTIFICATE,
    "TLSV1_ALERT_UNKNOWN_CA": _REFUSED_CERTIFICATE,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": _REFUSED_CERTIFICATE,
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": _REFUSED_CERTIFICATE,
    "TLSV1_ALERT_ACCESS_DENIED": _REFUSED_CERTIFICATE,
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": (
        "our client certificate has expired",
        "renew the one in ssl.keystore.location",
    ),
    "SSLV3_ALERT_CERTIFICATE_REVOKED": (
        "our client certificate was revoked",
        "renew the one in ssl.keystore.location",
    ),
}
_NO_COMMON = (
    "we and the broker have no TLS version or cipher suite in common",
    "check ssl.enabled.protocols and ssl.cipher.suites here and on the broker",
)
# Some brokers send this to a client without a certificate, too.
_NO_COMMON_OR_KEY = (
    "we and the broker have no cipher suite in common, or it wants a client certificate",
    "check ssl.cipher.suites and ssl.keystore.location",
)
_NOT_TLS = (
    "the server there does not speak TLS",
    "check the port in bootstrap.servers and security.protocol",
)
_OTHERS = {
    "SSLV3_ALERT_HANDSHAKE_FAILURE": _NO_COMMON,
    "TLSV1_ALERT_PROTOCOL_VERSION": _NO_COMMON,
    "TLSV1_ALERT_INSUFFICIENT_SECURITY": _NO_COMMON,
    "UNSUPPORTED_PROTOCOL": _NO_COMMON,
    "NO_PROTOCOLS_AVAILABLE": _NO_COMMON,
    "WRONG_VERSION_NUMBER": _NOT_TLS,
    "PACKET_LENGTH_TOO_LONG": _NOT_TLS,
    "RECORD_LAYER_FAILURE": _NOT_TLS,
    "UNEXPECTED_EOF_WHILE_READING": _NOT_TLS,
}


def explain_handshake(error: OSError, has_own_key: bool) -> KafkaError:
    """The error for people of a handshake that failed."""
    if not isinstance(error, ssl.SSLError) or isinstance(error, ssl.SSLEOFError):
        cause = "the broker closed the connection; perhaps " + _NOT_TLS[0]
        return TransportError(f"TLS handshake: {cause}; {_NOT_TLS[1]}")
    return _explain(error, has_own_key)


def explain_later(error: ssl.SSLError, has_own_key: bool) -> KafkaError:
    """The same for what comes later: with TLS 1.3 a client learns of its rejection only then."""
    return _explain(error, has_own_key)


def explain_silence(has_own_key: bool) -> str:
    """Why a broker may hang up before it has sent anything."""
    cause, remedy = _REFUSED_CERTIFICATE if has_own_key else _NEEDS_CERTIFICATE
    return f"the broker closed the connection after the TLS handshake; perhaps {cause}; {remedy}"


def _explain(error: ssl.SSLError, has_own_key: bool) -> KafkaError:
    if isinstance(error, ssl.SSLCertVerificationError):
        unknown = (f"the broker's certificate was rejected: {error.verify_message}", "")
        return AuthenticationError(_line(_REFUSED_BY_US.get(error.verify_code, unknown)))
    reason = error.reason or ""
    if reason in _REFUSED_BY_BROKER:
        # Brokers have several alerts for a client without a certificate.
        words = _REFUSED_BY_BROKER[reason] if has_own_key else _NEEDS_CERTIFICATE
        return AuthenticationError(_line(words))
    words = _OTHERS.get(reason, (reason or str(error), ""))
    is_vague = reason == "SSLV3_ALERT_HANDSHAKE_FAILURE" and not has_own_key
    return TransportError(_line(_NO_COMMON_OR_KEY if is_vague else words))


def _line(words: tuple[str, str]) -> str:
    cause, remedy = words
    return f"TLS handshake: {cause}; {remedy}" if remedy else f"TLS handshake: {cause}"
