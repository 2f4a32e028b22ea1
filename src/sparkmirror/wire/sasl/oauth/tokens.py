"""Where tokens for OAUTHBEARER come from: options of the login module, a file, a token endpoint.

Runs on: threads of `renewing`; a token endpoint may take its time. Mirrors: Kafka's
OAuthBearerUnsecuredLoginCallbackHandler, FileJwtRetriever, ClientCredentialsJwtRetriever (4.3;
KIP-768).
"""

from __future__ import annotations

import base64
import re
import ssl
import time
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sparkmirror.errors import AuthenticationError, TransportError
from sparkmirror.foreign_json import parse_json
from sparkmirror.retry import RetryPolicy, retry_until
from sparkmirror.wire.sasl.oauth import web
from sparkmirror.wire.sasl.oauth.jwt import BearerToken, read_token, unsecured_token
from sparkmirror.wire.secret_files import read_file

UNSECURED = "unsecuredLogin"
# A retry gets the same; all other statuses may come from a server that is being restarted.
FINAL_STATUSES = frozenset((400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 412, 413, 414))


@dataclass(slots=True)
class UnsecuredTokens:
    """Unsigned tokens that we make ourselves."""

    options: Mapping[str, str] = field(repr=False)
    extensions: Mapping[str, str] = field(default_factory=dict)

    def fetch(self) -> BearerToken:
        """A new one."""
        now = time.time()
        claims: dict[str, Any] = {"iat": round(now, 3), "exp": round(now + self._life(), 3)}
        for key, value in self.options.items():
            kind, _, name = key.removeprefix(UNSECURED).partition("Claim_")
            if key.startswith(UNSECURED) and name:
                claims[name] = _claim(key, kind, value)
        subject = self.options.get(f"{UNSECURED}PrincipalClaimName", "sub")
        text = unsecured_token(claims)
        return read_token(text, now, "sasl.jaas.config", subject, self.extensions)

    def _life(self) -> float:
        return _number(f"{UNSECURED}LifetimeSeconds", self.options, "3600")


def _claim(key: str, kind: str, value: str) -> Any:
    if kind == "Number":
        return _number(key, {key: value}, "0")
    if kind == "List":
        # The first character separates the elements.
        return value[1:].split(value[0]) if value else []
    return value


def _number(key: str, options: Mapping[str, str], default: str) -> float:
    try:
        return float(options.get(key, default))
    except ValueError as error:
        raise AuthenticationError(f"sasl.jaas.config: the option {key} is not a number") from error


@dataclass(slots=True)
class FileTokens:
    """A token that another program keeps fresh in a file."""

    path: str
    subject_claim: str = "sub"
    extensions: Mapping[str, str] = field(default_factory=dict)

    def fetch(self) -> BearerToken:
        """The one that is in the file now."""
        try:
            text = read_file(self.path).decode("ascii")
        except OSError as error:
            raise AuthenticationError(
                f"the token file {self.path} cannot be read: {error.strerror or error}"
            ) from error
        except UnicodeDecodeError as error:
            raise AuthenticationError(f"the token file {self.path} holds no token") from error
        return read_token(text, time.time(), self.path, self.subject_claim, self.extensions)


@dataclass(slots=True)
class EndpointTokens:
    """Tokens of a server; `form` and `headers` make the request and may change every time."""

    url: str
    headers: Callable[[], Mapping[str, str]] = field(repr=False)
    form: Callable[[], Mapping[str, str]] = field(repr=False)
    subject_claim: str = "sub"
    extensions: Mapping[str, str] = field(default_factory=dict)
    context: ssl.SSLContext | None = None
    timeout_seconds: float = web.TIMEOUT_SECONDS
    backoff_seconds: float = 0.1
    backoff_max_seconds: float = 10.0
    # How far this machine's clock is ahead of the server's.
    skew_seconds: float = 0.0

    def fetch(self) -> BearerToken:
        """A new one; retried for a while when the server has a problem."""
        most = self.backoff_max_seconds
        try:
            return retry_until(
                self._fetch_once,
                RetryPolicy(self.backoff_seconds, most, jitter=0.0),
                most,
                is_retriable=lambda error: isinstance(error, TransportError),
                pause=_sleep,
            )
        except TransportError as error:
            raise self._error(str(error)) from error

    def _fetch_once(self) -> BearerToken:
        headers = {
            "Accept": "application/json",
            "Cache-Control": "no-cache",
            "Content-Type": "application/x-www-form-urlencoded",
            **self.headers(),
        }
        body = urllib.parse.urlencode(dict(self.form())).encode()
        response = web.ask(
            "POST", self.url, headers, body, timeout=self.timeout_seconds, context=self.context
        )
        now = time.time()
        if response.date is not None:
            self.skew_seconds = now - response.date
        if not 200 <= response.status < 300:
            raise self._rejected(response)
        where = web.address(self.url)
        return read_token(self._token(response), now, where, self.subject_claim, self.extensions)

    def _rejected(self, response: web.HttpResponse) -> AuthenticationError | TransportError:
        reason = _error_of(response.body)
        text = f"HTTP status {response.status}" + (f" ({reason})" if reason else "")
        if response.status in FINAL_STATUSES or 300 <= response.status < 400:
            return self._error(f"{text}; check the client id, its secret and the scope")
        return TransportError(f"{web.address(self.url)}: {text}")

    def _token(self, response: web.HttpResponse) -> str:
        try:
            found = parse_json(response.body)
            token = found.get("access_token") or found.get("id_token")
        except (ValueError, AttributeError) as error:
            raise self._error("its response is not the JSON of a token server") from error
        if not isinstance(token, str):
            raise self._error("its response has neither access_token nor id_token")
        return token

    def _error(self, why: str) -> AuthenticationError:
        where = web.address(self.url)
        reason = why.removeprefix(f"{where}: ")
        return AuthenticationError(
            f"get a token from {where}: {reason}; see sasl.oauthbearer.token.endpoint.url"
        )


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def client_credentials(client_id: str, secret: str, *, urlencode: bool) -> Mapping[str, str]:
    """The header that names the client of a token server."""
    if urlencode:
        client_id, secret = urllib.parse.quote_plus(client_id), urllib.parse.quote_plus(secret)
    return {"Authorization": "Basic " + base64.b64encode(f"{client_id}:{secret}".encode()).decode()}


def _error_of(body: bytes) -> str:
    """The code of RFC 6749, which has no secrets; the description may have."""
    try:
        found = parse_json(body)
    except ValueError:
        return ""
    code = found.get("error") if isinstance(found, dict) else None
    return code if isinstance(code, str) and re.fullmatch(r"[\w.-]{1,60}", code) else ""
