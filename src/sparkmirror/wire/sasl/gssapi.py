"""GSSAPI (RFC 4752): Kerberos tickets; the login module names a keytab or a ticket cache.

we      AP-REQ for <service>/<host>
broker  AP-REP                          (it proves that it is the service)
we      nothing
broker  the protections it offers       we      none of them, which is all that Kafka does
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future

from sparkmirror.errors import AuthenticationError, MirrorError
from sparkmirror.wire.sasl import gss_library as gss
from sparkmirror.wire.sasl.mechanism import Login, Mechanism
from sparkmirror.wire.secret_files import path_of

NO_PROTECTION = 1
NO_TICKET = "No credentials cache found"
# By a part of the text of MIT's library.
TIPS = {
    "Cannot contact any KDC": "check the realm's addresses in krb5.conf",
    "not found in Kerberos database": (
        "check sasl.kerberos.service.name and the names in bootstrap.servers"
    ),
    "Clock skew": "compare the clocks of this machine and the KDC",
    "cannot be read": "check keyTab and ticketCache in sasl.jaas.config",
    "expired": "run kinit, or use a keytab",
}


class Gssapi(Mechanism):
    """One exchange, whose first token is there already: making it may need the KDC."""

    def __init__(self, context: gss.GssContext) -> None:
        self._context = context
        self._first = context.step(b"")
        self._is_done = False

    def start(self) -> bytes:
        return self._first

    def respond(self, challenge: bytes) -> bytes | None:
        if self._is_done:
            return None
        if not self._context.is_complete:
            return self._context.step(challenge)
        self._is_done = True
        offered = self._context.unwrap(challenge)
        if len(offered) != 4 or not offered[0] & NO_PROTECTION:
            raise AuthenticationError("Kerberos: the broker insists on protection that Kafka lacks")
        return self._context.wrap(bytes((NO_PROTECTION, 0, 0, 0)))


class GssapiLogin(Login):
    """The options of Krb5LoginModule."""

    mechanism = "GSSAPI"

    def __init__(self, service: str, options: Mapping[str, str], *, keytab: bool) -> None:
        """With `keytab`, tickets are obtained with its key; else those of a ticket cache are used.

        Raises:
            MissingPart: this machine has no Kerberos library.
        """
        gss.library()
        self.user = options.get("principal", "")
        self._service = service
        self._keytab = options.get("keyTab", "") if keytab else None
        self._cache = gss.memory_cache() if keytab else options.get("ticketCache", "")
        self._lock = threading.Lock()

    def begin(self, host: str) -> Future[Mechanism]:
        return in_thread(f"Kerberos for {host}", lambda: self._exchange(host))

    def advice(self) -> str:
        return "check the principal and the clocks; the broker's log has more"

    def _exchange(self, host: str) -> Mechanism:
        try:
            with self._lock:  # one request for a ticket, then it is in the cache
                name = gss.GssName(self.user, gss.PRINCIPAL_NAME) if self.user else None
                credentials = gss.Credentials(name, self._store())
                service = gss.GssName(f"{self._service}@{host}", gss.HOST_BASED_SERVICE)
                return Gssapi(gss.GssContext(service, credentials))
        except AuthenticationError as error:
            whom = f" as '{self.user}'" if self.user else ""
            what = f"GSSAPI login{whom} for the service {self._service}/{host}"
            raise AuthenticationError(f"{what}: {error}; {self._remedy(str(error))}") from error

    def _remedy(self, text: str) -> str:
        if NO_TICKET in text and self._keytab is None:
            return "run kinit, or name a keytab: useKeyTab=true keyTab=... principal=..."
        if NO_TICKET in text:
            return "check that the keytab has a key of this principal (klist -k)"
        return next((tip for part, tip in TIPS.items() if part in text), "see krb5.conf")

    def _store(self) -> dict[str, str]:
        store = {}
        if self._cache:
            is_file = ":" not in self._cache.removeprefix("FILE:")
            store["ccache"] = _as_file(self._cache) if is_file else self._cache
        if self._keytab:
            store["client_keytab"] = _as_file(self._keytab)
        return store


def in_thread(name: str, make: Callable[[], Mechanism]) -> Future[Mechanism]:
    """What `make` returns or raises, from a thread of its own."""
    future: Future[Mechanism] = Future()

    def run() -> None:
        try:
            future.set_result(make())
        except MirrorError as error:
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future


def _as_file(path: str) -> str:
    """A keytab or ticket cache as the library names it, which can read files only."""
    path = path.removeprefix("FILE:")
    try:
        return f"FILE:{path_of(path)}"
    except OSError as error:
        reason = error.strerror or error
        raise AuthenticationError(f"Kerberos: {path} cannot be read: {reason}") from error
