"""Signatures of the requests that workers send to each other, with the group's session key.

Runs on: worker. Headers and errors are those of Connect's internal requests (KIP-507). Connect
signs only the body; here method, path and query are signed too, because most forwarded requests
have no body. Genuine workers are never in one group with ours, so the two never meet.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import time
from collections.abc import Callable, Mapping, Sequence

from sparkmirror.config.worker.inter_worker import MACS, InterWorkerConfig
from sparkmirror.connect.entities import RequestError
from sparkmirror.connect.group.session_keys import SessionKey, accepted_keys

SIGNATURE = "x-connect-authorization"
ALGORITHM = "x-connect-request-signature-algorithm"
MISSING = "Internal request missing required signature"
INVALID = "Internal request contained invalid signature."
NO_KEY = (
    "This worker is still starting up and has not been able to read a session key from the config "
    "topic yet"
)
OTHER_ALGORITHM = (
    "This worker does not support the '%s' key signing algorithm used by other workers. "
    "This worker is currently configured to use: [%s]. "
    "Check that all workers' configuration files permit the same set of signature algorithms, "
    "and correct any misconfigured worker and restart it."
)


class RequestSigner:
    """Signs requests and checks signatures; any thread may use it.

    `keys` returns the newest session key and the one before it.
    """

    def __init__(
        self,
        config: InterWorkerConfig,
        keys: Callable[[], Sequence[SessionKey]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._config = config
        self._keys = keys
        self._clock = clock

    @property
    def has_key(self) -> bool:
        return bool(self._keys())

    def headers(self, method: str, target: bytes, body: bytes) -> dict[str, str]:
        """The headers that sign a request; `target` is its path and query as sent."""
        keys = self._keys()
        if not keys:
            raise RequestError(503, NO_KEY)
        algorithm = self._config.signature_algorithm
        signature = _sign(keys[0], algorithm, method, target, body)
        return {SIGNATURE: base64.b64encode(signature).decode(), ALGORITHM: algorithm}

    def check(self, method: str, target: bytes, body: bytes, headers: Mapping[str, str]) -> None:
        """Raises RequestError unless a worker of this group sent exactly this request."""
        algorithm = headers.get(ALGORITHM)
        if SIGNATURE not in headers or algorithm is None:
            raise RequestError(400, MISSING)
        accepted = self._config.verification_algorithms
        if algorithm not in accepted:
            raise RequestError(400, OTHER_ALGORITHM % (algorithm, ", ".join(accepted)))
        keys = accepted_keys(self._keys(), int(self._clock() * 1000))
        if not keys:
            raise RequestError(503, NO_KEY)
        given = _decoded(headers[SIGNATURE])
        signatures = [_sign(key, algorithm, method, target, body) for key in keys]
        if not any(hmac.compare_digest(given, each) for each in signatures):
            raise RequestError(403, INVALID)


def _sign(key: SessionKey, algorithm: str, method: str, target: bytes, body: bytes) -> bytes:
    signed = b"%s %s\n%s" % (method.encode(), target, body)
    return hmac.digest(key.key, signed, MACS[algorithm].digest)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise RequestError(403, INVALID) from None
