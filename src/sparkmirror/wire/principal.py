"""Who we are to a cluster, as far as the settings of this client show.

Runs on: executor and worker. Brokers do not report the principal of a client, so this is what they
use unless they were set up to map names (`principal.builder.class`,
`ssl.principal.mapping.rules`, `sasl.kerberos.principal.to.local.rules`).
"""

from __future__ import annotations

from cryptography import x509

from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.config_def import BadValue, Secret
from sparkmirror.config.keys.security_keys import SECURITY_PROTOCOL
from sparkmirror.config.security.jaas import LoginModule, parse_jaas
from sparkmirror.errors import ConfigError
from sparkmirror.wire.tls.tls_context import TlsSettings

ANONYMOUS = "User:ANONYMOUS"
JAAS = "sasl.jaas.config"
MECHANISM = "sasl.mechanism"
# Clients that have no name in their settings.
UNKNOWN = "User:<{}>"
UNSECURED_SUBJECT = "unsecuredLoginStringClaim_sub"


def principal_of(config: ClientConfig) -> str:
    """`User:` and the name, or a text in angle brackets for a name that only the broker knows."""
    protocol = str(config.security.get(SECURITY_PROTOCOL.name, SECURITY_PROTOCOL.default))
    if protocol.startswith("SASL_"):
        return _of_login(config)
    if protocol == "SSL":
        return _of_certificate(config)
    return ANONYMOUS


def _of_login(config: ClientConfig) -> str:
    mechanism = str(config.security.get(MECHANISM, "GSSAPI")).upper()
    module = _login_module(config)
    options = {} if module is None else module.options
    if mechanism == "GSSAPI":
        # The default rule of brokers: what stands before the host and the realm.
        name = options.get("principal", "").partition("@")[0].partition("/")[0]
    elif mechanism == "OAUTHBEARER":
        name = options.get(UNSECURED_SUBJECT, "")
    else:
        name = options.get("username", "")
    return f"User:{name}" if name else UNKNOWN.format(f"of the {mechanism} login")


def _login_module(config: ClientConfig) -> LoginModule | None:
    text = config.security.get(JAAS)
    if text is None:
        return None
    try:
        return parse_jaas(text.reveal() if isinstance(text, Secret) else str(text))
    except BadValue:  # the login reports it
        return None


def _of_certificate(config: ClientConfig) -> str:
    try:
        own = TlsSettings(config.security, f"cluster '{config.alias}'").own_key()
    except ConfigError:  # connecting reports it
        own = None
    if own is None or not own.chain:
        return ANONYMOUS
    try:
        return f"User:{x509.load_der_x509_certificate(own.chain[0]).subject.rfc4514_string()}"
    except ValueError:  # the same
        return UNKNOWN.format("of the certificate")
