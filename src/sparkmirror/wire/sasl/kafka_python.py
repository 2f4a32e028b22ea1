"""Our logins in kafka-python's connections, so that there is one implementation of each mechanism.

Runs on: worker, on the thread of an admin client, which may wait. kafka-python makes the mechanism
of a name from its own registry; the login travels in an option that only its own OAUTHBEARER reads.
"""

from __future__ import annotations

from concurrent.futures import TimeoutError as NotInTime
from typing import Any

import kafka.errors
from kafka.net import sasl
from kafka.net.sasl.abc import SaslMechanism

from sparkmirror.config.security.sasl import MECHANISMS
from sparkmirror.errors import MirrorError
from sparkmirror.wire.sasl.mechanism import Login, Mechanism

LOGIN = "sasl_oauth_token_provider"
WAIT_SECONDS = 30.0


class OurMechanism(SaslMechanism):  # type: ignore[misc]
    """One exchange, as kafka-python drives it: ask for bytes, hand over the response."""

    def __init__(self, **config: Any) -> None:
        self._login: Login = config[LOGIN]
        self._host: str = config["host"]
        self._mechanism: Mechanism | None = None
        self._next: bytes | None = None
        self._is_done = False

    def auth_bytes(self) -> bytes:
        if self._mechanism is None:
            self._mechanism = self._begin()
            return self._mechanism.start()
        return self._next or b""

    def receive(self, auth_bytes: bytes) -> None:
        assert self._mechanism is not None
        try:
            self._next = self._mechanism.respond(bytes(auth_bytes))
        except MirrorError as error:
            raise kafka.errors.SaslAuthenticationFailedError(str(error)) from error
        self._is_done = self._next is None

    def is_done(self) -> bool:
        return self._is_done

    def is_authenticated(self) -> bool:
        return self._is_done

    def auth_details(self) -> str:
        return f"{self._login.mechanism} login"

    def _begin(self) -> Mechanism:
        try:
            return self._login.begin(self._host).result(WAIT_SECONDS)
        except MirrorError as error:
            raise kafka.errors.SaslAuthenticationFailedError(str(error)) from error
        except NotInTime as error:
            raise kafka.errors.KafkaTimeoutError("the credentials did not come") from error


def options(login: Login) -> dict[str, Any]:
    """What a client of kafka-python gets."""
    for name in MECHANISMS:
        sasl.register_sasl_mechanism(name, OurMechanism, overwrite=True)
    return {"sasl_mechanism": login.mechanism, LOGIN: login}
