"""AWS_MSK_IAM: a signed request, sent as JSON, is the password for a broker of AWS MSK.

Mirrors: the mechanism that aws-msk-iam-auth documents (version 2020_10_22); the same signature as a
token for OAUTHBEARER is what its IAMOAuthBearerLoginCallbackHandler makes.
"""

from __future__ import annotations

import base64
import json
import re
import time
from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import Future

from sparkmirror.errors import AuthenticationError
from sparkmirror.wire.sasl.aws_signing import Keys, Scope, Signable, encode_query, presigned_query
from sparkmirror.wire.sasl.mechanism import Login, Mechanism
from sparkmirror.wire.sasl.oauth.jwt import BearerToken
from sparkmirror.wire.sasl.oauth.oauthbearer import OAuthBearer
from sparkmirror.wire.sasl.renewing import Renewing, then

VERSION = "2020_10_22"
SERVICE = "kafka-cluster"
ACTION = "kafka-cluster:Connect"
USER_AGENT = "sparkmirror"
EXPIRES_SECONDS = 900
BROKER_NAME = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.(?:amazonaws|api\.aws|vpce)\.")


class MskIam(Mechanism):
    """One message; the broker answers with the id of the request."""

    def __init__(self, host: str, keys: Keys, scope: Scope) -> None:
        self._host = host
        self._keys = keys
        self._scope = scope

    def start(self) -> bytes:
        request = Signable("GET", {"host": self._host}, {"Action": ACTION})
        query = presigned_query(request, self._keys, self._scope, EXPIRES_SECONDS)
        fields = {"version": VERSION, "host": self._host, "user-agent": USER_AGENT}
        fields |= {name.lower(): value for name, value in query.items()}
        return json.dumps(fields, separators=(",", ":")).encode()

    def answer(self, challenge: bytes) -> bytes | None:
        if not challenge:
            raise AuthenticationError("AWS_MSK_IAM: the broker's answer is empty")
        return None


class IamLogin(Login):
    """Keys of one chain of providers, and the region that they are used in."""

    def __init__(
        self,
        keys: Renewing[Keys],
        region: Callable[[], str],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`region` is asked for when a broker's name does not tell; it may be empty."""
        self._keys = keys
        self._region = region
        self._clock = clock

    def begin(self, host: str) -> Future[Mechanism]:
        def exchange(keys: Keys) -> Mechanism:
            self.user = keys.access_key
            scope = Scope(self._clock(), region_of(host) or self._region(), SERVICE)
            if not scope.region:
                raise AuthenticationError(
                    f"AWS IAM login at {host}: its name does not tell the region; set "
                    "AWS_REGION or the region of the profile"
                )
            return self._exchange(host, keys, scope)

        return then(self._keys.get(), exchange)

    def advice(self) -> str:
        return (
            "check that this identity may do kafka-cluster:Connect, and this machine's clock: "
            "a signature is good for minutes"
        )

    @abstractmethod
    def _exchange(self, host: str, keys: Keys, scope: Scope) -> Mechanism:
        """The exchange with the broker `host`."""


class MskIamLogin(IamLogin):
    """The signature as JSON."""

    mechanism = "AWS_MSK_IAM"

    def _exchange(self, host: str, keys: Keys, scope: Scope) -> Mechanism:
        return MskIam(host, keys, scope)


class MskTokenLogin(IamLogin):
    """The signature as a token."""

    mechanism = "OAUTHBEARER"

    def _exchange(self, host: str, keys: Keys, scope: Scope) -> Mechanism:
        return OAuthBearer(iam_token(keys, scope))


def region_of(host: str) -> str:
    """The region in the name of an MSK broker; empty when there is none."""
    found = BROKER_NAME.search(f"{host}.")
    return found[1] if found else ""


def iam_token(keys: Keys, scope: Scope) -> BearerToken:
    """A URL that is valid for some minutes."""
    host = f"kafka.{scope.region}.amazonaws.com"
    request = Signable("GET", {"host": host}, {"Action": ACTION})
    query = presigned_query(request, keys, scope, EXPIRES_SECONDS)
    url = f"https://{host}/?{encode_query(query)}&User-Agent={USER_AGENT}"
    text = base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
    return BearerToken(text, keys.access_key, scope.at, scope.at + EXPIRES_SECONDS)
