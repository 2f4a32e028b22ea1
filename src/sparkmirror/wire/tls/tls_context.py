"""TLS settings of a Java client as OpenSSL contexts, made again when one of their files changes.

Runs on: executor and worker. A context is what connections share: whom to trust, the own key,
versions, cipher suites. `make_server_context` is for listeners.
"""

from __future__ import annotations

import logging
import os
import socket
import ssl
import tempfile
from collections.abc import Callable, Hashable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from cryptography import x509

from sparkmirror.config.config_def import Secret
from sparkmirror.config.keys.security_keys import SECURITY_KEYS
from sparkmirror.errors import ConfigError
from sparkmirror.wire import secret_files
from sparkmirror.wire.tls.key_stores import (
    KEY_PASSWORD,
    LOCATION,
    PASSWORD,
    TYPE,
    BadStore,
    OwnKey,
    pem_certificates,
    pem_own_key,
    read_own_key,
    read_trusted,
)
from sparkmirror.wire.tls.tls_suites import TLS13, SuiteContext, openssl_name

log = logging.getLogger(__name__)

VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
CLIENT_AUTH = {
    "required": ssl.CERT_REQUIRED,
    "requested": ssl.CERT_OPTIONAL,
    "none": ssl.CERT_NONE,
}
EXPIRES_SOON_DAYS = 14
# What Java 17 offers with TLS 1.2, best first: Python's defaults share no suite with old brokers.
JAVA_SUITES = (
    "ECDHE+AESGCM:ECDHE+CHACHA20:DHE+AESGCM:DHE+CHACHA20:ECDHE+AES:DHE+AES:RSA+AESGCM:RSA+AES:"
    "!aNULL:!eNULL:!aDSS:!AESCCM"
)

T = TypeVar("T")


class TlsSettings:
    """The ssl.* keys of one client or listener, with Kafka's defaults; `where` is for errors."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self.where = where
        self._values = values

    def __getitem__(self, name: str) -> Any:
        value = self._values.get(name, SECURITY_KEYS[name].default)
        return value.reveal() if isinstance(value, Secret) else value

    def files(self) -> tuple[str, ...]:
        """The files that these settings name."""
        named = (self["ssl.truststore.location"], self["ssl.keystore.location"])
        return tuple(path for path in named if path)

    def error(self, key: str, reason: str, remedy: str = "") -> ConfigError:
        """That `key` cannot be used; its value is shown unless it is a secret."""
        value = self._values.get(key)
        text = ",".join(value) if isinstance(value, tuple) else value
        shown = None if isinstance(value, Secret) else text
        return ConfigError(key, shown, reason, remedy, self.where)

    # -- stores ----------------------------------------------------------------------------------

    def trusted(self) -> tuple[bytes, ...] | None:
        """Certificates to trust, in DER; None means those of this machine."""
        inline, path = self["ssl.truststore.certificates"], self["ssl.truststore.location"]
        if inline:
            return self._reading("ssl.truststore", lambda: pem_certificates(inline))
        if not path:
            return None
        kind, password = self["ssl.truststore.type"], self["ssl.truststore.password"]
        data = self._read("ssl.truststore.location", path)
        return self._reading("ssl.truststore", lambda: read_trusted(data, kind, password))

    def own_key(self) -> OwnKey | None:
        """The client's or listener's own key, if it has one."""
        inline, path = self["ssl.keystore.key"], self["ssl.keystore.location"]
        password, key_password = self["ssl.keystore.password"], self["ssl.key.password"]
        if inline:
            chain = self["ssl.keystore.certificate.chain"] or ""
            return self._reading("ssl.keystore", lambda: pem_own_key(inline, chain, key_password))
        if not path:
            return None
        kind = self["ssl.keystore.type"]
        data = self._read("ssl.keystore.location", path)
        return self._reading(
            "ssl.keystore", lambda: read_own_key(data, kind, password, key_password)
        )

    def _read(self, key: str, path: str) -> bytes:
        try:
            return secret_files.read_file(path)
        except OSError as error:
            reason = f"the file cannot be read: {error.strerror or error}"
            raise self.error(key, reason, "check the path and its permissions") from error

    def _reading(self, store: str, read: Callable[[], T]) -> T:
        try:
            return read()
        except BadStore as bad:
            raise self._store_error(store, bad) from bad

    def _store_error(self, store: str, bad: BadStore) -> ConfigError:
        inline = "certificates" if store == "ssl.truststore" else "key"
        names = {
            LOCATION: f"{store}.location" if self[f"{store}.location"] else f"{store}.{inline}",
            PASSWORD: f"{store}.password",
            KEY_PASSWORD: "ssl.key.password",
            TYPE: f"{store}.type",
        }
        path = self[f"{store}.location"]
        of_file = f"{path}: " if path and bad.about != LOCATION else ""
        return self.error(names[bad.about], of_file + bad.reason, bad.remedy)

    # -- versions and suites ---------------------------------------------------------------------

    def versions(self) -> tuple[ssl.TLSVersion, ssl.TLSVersion]:
        """The oldest and the newest version to offer.

        ssl.protocol is the newest, even if ssl.enabled.protocols has a newer one.
        """
        newest = VERSIONS.get(self["ssl.protocol"], ssl.TLSVersion.TLSv1_3)
        enabled = self["ssl.enabled.protocols"] or tuple(VERSIONS)
        usable = sorted(v for name, v in VERSIONS.items() if name in enabled and v <= newest)
        if not usable:
            reason = f"no TLS version is left with ssl.protocol={self['ssl.protocol']}"
            remedy = f"allow one of {', '.join(VERSIONS)}"
            raise self.error("ssl.enabled.protocols", reason, remedy)
        return usable[0], usable[-1]

    def suites(self) -> tuple[str, ...]:
        """Cipher suites by Java's names; empty means all."""
        return tuple(self["ssl.cipher.suites"] or ())


class TlsContext:
    """An OpenSSL context, and what cannot be seen of it."""

    def __init__(self, context: SuiteContext, has_own_key: bool) -> None:
        self.ssl = context
        self.has_own_key = has_own_key


def make_client_context(settings: TlsSettings) -> TlsContext:
    """What connections to brokers are made with.

    Raises:
        ConfigError: a store that cannot be read, or settings that fit nothing.
    """
    context = SuiteContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = bool(settings["ssl.endpoint.identification.algorithm"])
    context.set_ciphers(JAVA_SUITES)
    _choose(context, settings)
    _trust(context, settings)
    return TlsContext(context, _load_own_key(context, settings))


def make_server_context(settings: TlsSettings, client_auth: str = "none") -> TlsContext:
    """What a listener is made with; `client_auth` is none, requested or required."""
    context = SuiteContext(ssl.PROTOCOL_TLS_SERVER)
    _choose(context, settings)
    if not _load_own_key(context, settings):
        reason = "a listener for https needs a key and a certificate"
        raise settings.error("ssl.keystore.location", reason, "name a key store")
    context.verify_mode = CLIENT_AUTH[client_auth]
    if context.verify_mode != ssl.CERT_NONE:
        _trust(context, settings)
    return TlsContext(context, True)


def _choose(context: SuiteContext, settings: TlsSettings) -> None:
    """Set versions and suites, which also decide how weak a key may be."""
    context.minimum_version, context.maximum_version = settings.versions()
    suites = settings.suites()
    if not suites:
        return
    context.suites13 = frozenset(suites) & TLS13
    _set_old_suites(context, settings, [suite for suite in suites if suite not in TLS13])
    if not context.suites13:
        # TLS 1.3 would bring suites that the settings do not have.
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    if context.minimum_version > context.maximum_version:
        reason = "has no suite for the TLS versions that may be used"
        raise settings.error("ssl.cipher.suites", reason, "add one, or allow TLSv1.2")


def _set_old_suites(context: ssl.SSLContext, settings: TlsSettings, suites: list[str]) -> None:
    known = [name for name in map(openssl_name, suites) if _is_known(name)]
    if known:
        context.set_ciphers(":".join(known))
    elif frozenset(settings.suites()) & TLS13:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    else:
        reason = "names no cipher suite that OpenSSL has"
        raise settings.error("ssl.cipher.suites", reason, "TLS_AES_256_GCM_SHA384 is one")
    if len(known) < len(suites):
        unknown = [suite for suite in suites if not _is_known(openssl_name(suite))]
        log.warning("%s: ssl.cipher.suites: OpenSSL has no %s", settings.where, ", ".join(unknown))


def _is_known(name: str) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).set_ciphers(name)
    except ssl.SSLError:
        return False
    return True


def _trust(context: ssl.SSLContext, settings: TlsSettings) -> None:
    certificates = settings.trusted()
    if certificates is None:
        _trust_this_machine(context, settings)
        return
    # Java trusts what is in the store, whether a CA, one below it or the broker's own certificate.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=b"".join(certificates))
    except ssl.SSLError as error:
        key = "ssl.truststore.location"
        name = key if settings[key] else "ssl.truststore.certificates"
        raise settings.error(name, "holds a certificate that is damaged") from error


def _trust_this_machine(context: ssl.SSLContext, settings: TlsSettings) -> None:
    paths = ssl.get_default_verify_paths()
    has_folder = paths.capath is not None and any(Path(paths.capath).iterdir())
    if paths.cafile is None and not has_folder:
        reason = "is not set, and this machine has no CA certificates of its own"
        remedy = "set it, or install the package ca-certificates"
        raise settings.error("ssl.truststore.location", reason, remedy)
    context.set_default_verify_paths()


def _load_own_key(context: ssl.SSLContext, settings: TlsSettings) -> bool:
    own = settings.own_key()
    if own is None:
        return False
    _warn_of_expiry(own, settings)
    try:
        _load_chain(context, own.pem())
    except ssl.SSLError as error:
        name = "ssl.keystore.location"
        key = name if settings[name] else "ssl.keystore.key"
        reason = f"key and certificate cannot be used: {error.reason or error}"
        raise settings.error(key, reason, "check that they belong together") from error
    return True


def _load_chain(context: ssl.SSLContext, pem: bytes) -> None:
    """OpenSSL takes a key from files only: this one is in memory, where the system has such."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("key")
        try:
            os.write(descriptor, pem)
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(pem)
        file.flush()
        context.load_cert_chain(file.name)


def _warn_of_expiry(own: OwnKey, settings: TlsSettings) -> None:
    """Not an error: brokers that ask for no certificate ignore it."""
    try:
        ends = x509.load_der_x509_certificate(own.chain[0]).not_valid_after_utc
    except ValueError as error:
        key = "ssl.keystore.location"
        raise settings.error(key, f"holds a certificate that is damaged: {error}") from error
    days = (ends - datetime.now(UTC)).days
    if days < EXPIRES_SOON_DAYS:
        verb = "expired" if ends < datetime.now(UTC) else "expires"
        log.warning(
            "%s: the certificate in %s %s on %s: replace it, it is read again without a restart",
            settings.where,
            settings["ssl.keystore.location"] or "ssl.keystore.certificate.chain",
            verb,
            ends.date(),
        )


class ContextSource:
    """The context for new connections: made again when a file has changed; shared by threads.

    It can take the place of an SSLContext where only `wrap_socket` is called.
    """

    def __init__(
        self,
        settings: TlsSettings,
        make: Callable[[TlsSettings], TlsContext] = make_client_context,
    ) -> None:
        self._settings = settings
        self._make = make
        self._lock = Lock()
        self._stamps = self._look()
        self._context = make(settings)

    def current(self) -> TlsContext:
        """The newest context that could be made."""
        with self._lock:
            stamps = self._look()
            if stamps != self._stamps:
                self._stamps = stamps
                self._renew()
            return self._context

    def wrap_socket(self, sock: socket.socket, **options: Any) -> ssl.SSLSocket:
        """As SSLContext does it, with the newest context."""
        return self.current().ssl.wrap_socket(sock, **options)

    def _look(self) -> tuple[Hashable, ...]:
        return tuple(map(secret_files.stamp, self._settings.files()))

    def _renew(self) -> None:
        try:
            self._context = self._make(self._settings)
        except ConfigError as error:
            # Perhaps it is being written: when it changes again, it is read again.
            log.warning("%s; the certificates read before stay in use", error)
        else:
            log.info("%s: certificates were read again", self._settings.where)
