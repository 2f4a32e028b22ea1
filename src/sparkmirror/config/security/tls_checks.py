"""Checks that ssl.* settings are complete and fit together, without opening a file.

Mirrors: org.apache.kafka.common.security.ssl.DefaultSslEngineFactory (4.3), for key stores.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparkmirror.config.config_def import Secret
from sparkmirror.config.findings import Findings

TLS_PROTOCOLS = ("SSL", "SASL_SSL")
# Older ones are off in OpenSSL, and in Java since 2021.
VERSIONS = ("TLSv1.2", "TLSv1.3")
OLD_VERSIONS = ("SSLv2Hello", "SSLv2", "SSLv3", "TLSv1", "TLSv1.1")
# Java's names without a version.
ANY_VERSION = ("TLS", "SSL")
PEM = "PEM"


def check_tls(values: Mapping[str, Any], findings: Findings) -> None:
    """Report what cannot work; `values` are parsed and may lack keys of other clients."""
    if values["security.protocol"] not in TLS_PROTOCOLS:
        return
    _check_versions(values, findings)
    _check_names(values, findings)
    _check_key_store(values, findings)
    _check_trust_store(values, findings)


def _check_versions(values: Mapping[str, Any], findings: Findings) -> None:
    newest, enabled = values["ssl.protocol"], values["ssl.enabled.protocols"]
    remedy = f"use one of {', '.join(VERSIONS)}"
    if newest not in (*VERSIONS, *ANY_VERSION):
        findings.error("ssl.protocol", newest, "no TLS version that can be used", remedy)
    unknown = [name for name in enabled if name not in (*VERSIONS, *OLD_VERSIONS)]
    old = [name for name in enabled if name in OLD_VERSIONS]
    if unknown:
        findings.error("ssl.enabled.protocols", _shown(enabled), "no TLS version", remedy)
    elif old and len(old) == len(enabled):
        findings.error("ssl.enabled.protocols", _shown(enabled), "all are too old", remedy)
    elif old:
        findings.warn_key("ssl.enabled.protocols", f"{_shown(old)} is too old and not offered")


def _shown(names: list[str] | tuple[str, ...]) -> str:
    return ",".join(names)


def _check_names(values: Mapping[str, Any], findings: Findings) -> None:
    key = "ssl.endpoint.identification.algorithm"
    algorithm = values[key] or ""
    if algorithm.lower() not in ("", "https"):
        findings.error(
            key, algorithm, "not known", "use https, or leave it empty to skip the name check"
        )
    elif not algorithm:
        findings.warn_key(
            key, "is empty: anyone with a certificate of the CA can impersonate a broker"
        )


def _check_key_store(values: Mapping[str, Any], findings: Findings) -> None:
    store = "ssl.keystore"
    has_key, has_chain = _has(values, f"{store}.key"), _has(values, f"{store}.certificate.chain")
    _check_store(values, findings, store, f"{store}.key" if has_key else "")
    if has_chain and not has_key:
        key = f"{store}.certificate.chain"
        findings.error(key, "", "there is no private key for it", f"set {store}.key")
    if has_key and not has_chain:
        findings.error(f"{store}.key", "", "has no certificate", f"set {store}.certificate.chain")
    has_file, is_pem = _has(values, f"{store}.location"), _is_pem(values, store)
    if has_file and not is_pem and not _has(values, f"{store}.password"):
        location = values[f"{store}.location"]
        reason = "the key store needs a password"
        findings.error(f"{store}.location", location, reason, f"set {store}.password")


def _check_trust_store(values: Mapping[str, Any], findings: Findings) -> None:
    store = "ssl.truststore"
    inline = f"{store}.certificates"
    _check_store(values, findings, store, inline if _has(values, inline) else "")


def _check_store(values: Mapping[str, Any], findings: Findings, store: str, inline: str) -> None:
    """Rules for both stores; `inline` is the key with PEM text, if it is set."""
    location, password = f"{store}.location", f"{store}.password"
    has_file, has_password = _has(values, location), _has(values, password)
    if inline and not _is_pem(values, store):
        kind = values[f"{store}.type"]
        findings.error(inline, "", f"is PEM, but {store}.type is {kind}", f"set {store}.type=PEM")
    if inline and has_file:
        findings.error(location, values[location], f"{inline} is set too", "set only one of them")
    if has_password and _is_pem(values, store):
        remedy = "remove it; a key's password is ssl.key.password"
        findings.error(password, "", "a PEM store has no password", remedy)
    elif has_password and not has_file:
        findings.error(password, "", "it has no store", f"set {location}")


def _is_pem(values: Mapping[str, Any], store: str) -> bool:
    return str(values[f"{store}.type"]).upper() == PEM


def _has(values: Mapping[str, Any], key: str) -> bool:
    value = values[key]
    return bool(value.reveal() if isinstance(value, Secret) else value)
