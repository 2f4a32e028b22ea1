"""AWS_MSK_IAM: a signed request, sent as JSON, is the password for a broker of AWS MSK.

Mirrors: the mechanism that aws-msk-iam-auth documents (version 2020_10_22); the same signature as a
token for OAUTHBEARER is what its IAMOAuthBearerLoginCallbackHandler makes.
"""

from __future__ import annotations

import base64
import json
import re
import urllib.parse
from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime

from sparkmirror.errors import AuthenticationError
from sparkmirror.wire.sasl.aws import Keys, presigned
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
    """One message; the broker returns the id of the request."""

    def __init__(self, host: str, keys: Keys, region: str) -> None:
        self._host = host
        self._keys = keys
        self._region = region

    def start(self) -> bytes:
        query = _signed(self._host, self._keys, self._region)
        fields = {"version": VERSION, "host": self._host, "user-agent": USER_AGENT}
        fields |= {name.lower(): value for name, value in query.items()}
        return json.dumps(fields, separators=(",", ":")).encode()

    def respond(self, challenge: bytes) -> bytes | None:
        if not challenge:
            raise AuthenticationError("AWS_MSK_IAM: the broker's response is empty")
        return None


class IamLogin(Login):
    """Keys of one chain of providers, and the region that they are used in."""

    def __init__(
        self,
        keys: Renewing[Keys],
        region: Callable[[], str],
    ) -> None:
        """`region` is called for brokers without a region in their name; it may return none."""
        self._keys = keys
        self._region = region

    def begin(self, host: str) -> Future[Mechanism]:
        def exchange(keys: Keys) -> Mechanism:
            self.user = keys.access_key
            region = region_of(host) or self._region()
            if not region:
                raise AuthenticationError(
                    f"AWS IAM login at {host}: its name does not contain the region; set "
                    "AWS_REGION or the region of the profile"
                )
            return self._exchange(host, keys, region)

        return then(self._keys.get(), exchange)

    def advice(self) -> str:
        return (
            "check that this identity may do kafka-cluster:Connect, and this machine's clock: "
            "a signature is good for minutes"
        )

    @abstractmethod
    def _exchange(self, host: str, keys: Keys, region: str) -> Mechanism:
        """The exchange with the broker `host`."""


class MskIamLogin(IamLogin):
    """The signature as JSON."""

    mechanism = "AWS_MSK_IAM"

    def _exchange(self, host: str, keys: Keys, region: str) -> Mechanism:
        return MskIam(host, keys, region)


class MskTokenLogin(IamLogin):
    """The signature as a token."""

    mechanism = "OAUTHBEARER"

    def _exchange(self, host: str, keys: Keys, region: str) -> Mechanism:
        return OAuthBearer(iam_token(keys, region))


def region_of(host: str) -> str:
    """The region in the name of an MSK broker; empty when there is none."""
    found = BROKER_NAME.search(f"{host}.")
    return found[1] if found else ""


def iam_token(keys: Keys, region: str) -> BearerToken:
    """A URL that is valid for some minutes."""
    host = f"kafka.{region}.amazonaws.com"
    signed = _signed(host, keys, region)
    query = urllib.parse.urlencode(
        sorted(signed.items()), quote_via=urllib.parse.quote, safe="-._~"
    )
    url = f"https://{host}/?{query}&User-Agent={USER_AGENT}"
    text = base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
    at = datetime.strptime(signed["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    return BearerToken(text, keys.access_key, at, at + EXPIRES_SECONDS)


def _signed(host: str, keys: Keys, region: str) -> dict[str, str]:
    return presigned(host, {"Action": ACTION}, keys, (SERVICE, region), EXPIRES_SECONDS)
