"""Decides whether to admit a request: by rate, origin, user and method.

Runs on: worker, in the event loop of the REST server. Passwords are checked on a thread, one at a
time, because hashes are slow by design; after a few wrong ones, responses slow down.
"""

from __future__ import annotations

import logging
from http import HTTPStatus

import anyio
import anyio.to_thread
from starlette.requests import Request

from sparkmirror.rest.request import RestOptions, RestResponse
from sparkmirror.rest.security.users import User, Users
from sparkmirror.rest.transport.headers import CrossOrigin
from sparkmirror.rest.transport.rate_limit import RateLimit, client_of

log = logging.getLogger(__name__)

# Of a request's scope: the `User` who has logged in.
USER = "sparkmirror.user"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
# Users rarely mistype a password more often; after that, one try every two seconds.
_FAILURES, _FAILURES_PER_SECOND = 10, 0.5
REALM = 'Basic realm="KafkaConnect"'
UNAUTHORIZED = "User cannot access the resource."
READ_ONLY = "User {} may only read."
OTHER_SITE = "Requests from pages of {} are not allowed."
TOO_MANY = "Too many requests."
TOO_MANY_FAILURES = "Too many wrong passwords."


class Guard:
    """Checks every request before it is routed."""

    def __init__(self, options: RestOptions, cors: CrossOrigin) -> None:
        self._users = options.users
        self._cors = cors
        rate = options.max_requests_per_second
        self._requests = RateLimit(rate, rate) if rate else None
        self._failures = RateLimit(_FAILURES_PER_SECOND, _FAILURES)
        self._login_thread = anyio.CapacityLimiter(1)
        self._turn = anyio.Lock()

    async def refusal(self, request: Request) -> RestResponse | None:
        """The response to a rejected request; None if it is admitted."""
        client = client_of(request.client.host if request.client else "")
        if self._requests is not None:
            if seconds := self._requests.seconds_to_wait(client):
                return _too_many(TOO_MANY, seconds)
            self._requests.take(client)
        if self._users is None or self._cors.is_preflight(request.method, request.headers):
            return None
        return await self._check_user(request, client, self._users)

    async def _check_user(self, request: Request, client: str, users: Users) -> RestResponse | None:
        authorization = request.headers.get("authorization", "")
        user = users.known(authorization)
        if user is None:
            if seconds := self._failures.seconds_to_wait(client):
                return _too_many(TOO_MANY_FAILURES, seconds)
            if not authorization:  # browsers ask without one first
                return self._refuse_login(request)
            # Concurrent requests wait here, and each is counted before the next is checked: sending
            # many at once does not allow more attempts.
            async with self._turn:
                outcome = await self._log_in(request, authorization, client, users)
            if isinstance(outcome, RestResponse):
                return outcome
            user = outcome
        request.scope[USER] = user
        return self._check_request(request, user)

    async def _log_in(
        self, request: Request, authorization: str, client: str, users: Users
    ) -> User | RestResponse:
        """Another request may have used up the permits, or logged in, before this one's turn."""
        if user := users.known(authorization):
            return user
        if seconds := self._failures.seconds_to_wait(client):
            return _too_many(TOO_MANY_FAILURES, seconds)
        user = await anyio.to_thread.run_sync(
            users.login, authorization, limiter=self._login_thread
        )
        if user is not None:
            return user
        self._failures.take(client)
        log.warning("login to the REST API from %s rejected", client)
        return self._refuse_login(request)

    @staticmethod
    def _refuse_login(request: Request) -> RestResponse:
        return RestResponse(
            HTTPStatus.UNAUTHORIZED,
            raw=UNAUTHORIZED.encode(),
            # The body is not JSON, but genuine workers send this type.
            content_type="text/plain" if request.method == "OPTIONS" else "application/json",
            headers={"WWW-Authenticate": REALM},
        )

    def _check_request(self, request: Request, user: User) -> RestResponse | None:
        if request.method in SAFE_METHODS:
            return None
        # Browsers add the stored password to requests of any page.
        origin = request.headers.get("origin", "")
        if origin and not self._is_own(request, origin):
            return _refuse(HTTPStatus.FORBIDDEN, OTHER_SITE.format(origin))
        if not user.may_write:
            return _refuse(HTTPStatus.FORBIDDEN, READ_ONLY.format(user.name))
        return None

    def _is_own(self, request: Request, origin: str) -> bool:
        host = origin.partition("://")[2]
        same = host.lower() == request.headers.get("host", "").lower()
        return same or self._cors.allows(origin)


def _too_many(message: str, seconds: int) -> RestResponse:
    return _refuse(HTTPStatus.TOO_MANY_REQUESTS, message, {"Retry-After": str(seconds)})


def _refuse(
    status: HTTPStatus, message: str, headers: dict[str, str] | None = None
) -> RestResponse:
    body = {"error_code": int(status), "message": message}
    return RestResponse(int(status), body, headers=headers or {})
