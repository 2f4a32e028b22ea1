"""Who may use the REST API: users and passwords of a file, for HTTP basic authentication.

Runs on: worker. The file is reread when it changes. Mirrors: Connect's JaasBasicAuthFilter and
PropertyFileLoginModule (4.3), except for a file without users: Connect then admits everyone.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import secrets
import threading
import time
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sparkmirror.config.config_def import BadValue
from sparkmirror.config.files.properties import load_properties
from sparkmirror.config.masking import remember
from sparkmirror.config.worker.rest_security import READ_ONLY_USERS
from sparkmirror.errors import ConfigError, ConfigErrors, MirrorError
from sparkmirror.rest.security.passwords import Password, parse_password
from sparkmirror.wire.secret_files import stamp

log = logging.getLogger(__name__)

ALL_USERS = "*"
_LOOK_SECONDS = 1.0
# Logins that need no hashing the next time; a worker has a handful of users.
_MOST_KNOWN = 1000


@dataclass(frozen=True, slots=True)
class User:
    """A user who has logged in."""

    name: str
    may_write: bool = True


class Users:
    """The users of a file; any thread may call the methods.

    Hashes are slow by design, so a successful login is remembered by a keyed digest until the file
    changes.
    """

    def __init__(
        self,
        path: Path,
        read_only: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises ConfigErrors if the file is not a valid file of users."""
        self._path = path
        self._read_only = frozenset(read_only)
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._known: dict[bytes, User] = {}
        self._stamp = stamp(str(path))
        self._looked_at = clock()
        self._passwords = load_users(path)
        self._check_read_only()
        self._stand_in = _stand_in(self._passwords)

    def known(self, authorization: str) -> User | None:
        """The user who logged in with this header before; never slow."""
        self._look()
        return self._known.get(self._digest(authorization))

    def login(self, authorization: str) -> User | None:
        """The user of this header, or None. Slow where passwords are hashed."""
        credentials = parse_basic(authorization)
        if credentials is None:
            return None
        name, password = credentials
        passwords = self._passwords
        fits = passwords.get(name, self._stand_in).fits(password)
        if not fits or name not in passwords:
            return None
        return self._remember(authorization, User(name, self._may_write(name)), passwords)

    def _may_write(self, name: str) -> bool:
        return self._read_only.isdisjoint((name, ALL_USERS))

    def _remember(self, authorization: str, user: User, passwords: Mapping[str, Password]) -> User:
        with self._lock:
            # The file may have changed since, with another password.
            if passwords is self._passwords and len(self._known) < _MOST_KNOWN:
                self._known[self._digest(authorization)] = user
        return user

    def _digest(self, authorization: str) -> bytes:
        return hmac.digest(self._key, authorization.encode(), hashlib.sha256)

    def _look(self) -> None:
        """Reread the file if it has changed; an invalid file changes nothing."""
        with self._lock:
            if self._clock() - self._looked_at < _LOOK_SECONDS:
                return
            self._looked_at = self._clock()
            found = stamp(str(self._path))
            if found != self._stamp:
                self._stamp = found
                self._reload(found)

    def _reload(self, found: Hashable) -> None:
        try:
            passwords = load_users(self._path)
        except MirrorError as error:
            log.warning("%s; the previous users stay valid", error)
            return
        self._passwords = passwords
        self._stand_in = _stand_in(passwords)
        self._known = {}
        log.info("reread the users of the REST API from %s: %d", self._path, len(passwords))

    def _check_read_only(self) -> None:
        unknown = sorted(self._read_only - self._passwords.keys() - {ALL_USERS})
        if unknown:
            log.warning("%s: %s not in %s", READ_ONLY_USERS, ", ".join(unknown), self._path)


def load_users(path: Path) -> dict[str, Password]:
    """Names and passwords. Raises ConfigErrors with everything that is wrong with the file."""
    passwords: dict[str, Password] = {}
    errors: list[ConfigError] = []
    for name, text in load_properties(path).items():
        try:
            passwords[name] = _password(name, text)
        except BadValue as bad:
            errors.append(ConfigError(name, None, bad.reason, bad.remedy, str(path)))
    if errors:
        raise ConfigErrors(errors)
    return passwords


def _password(name: str, text: str) -> Password:
    if not name or ":" in name:
        raise BadValue("not a user name", "use a name without a colon")
    if not text:
        raise BadValue("the password is empty", "give the user one, or remove the line")
    remember(text)
    return parse_password(text)


def _stand_in(passwords: Mapping[str, Password]) -> Password:
    """Check unknown names against this one, so that they take as long as known names."""
    return max(passwords.values(), key=lambda password: password.is_hashed)


def parse_basic(authorization: str) -> tuple[str, str] | None:
    """User and password in a header's value; None if it has none."""
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode()
    except ValueError:  # not base64, not ASCII, not UTF-8
        return None
    name, colon, password = text.partition(":")
    return (name, password) if name and colon else None
