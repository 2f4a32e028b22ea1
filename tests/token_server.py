"""A token server for tests: credentials or assertions in, signed tokens out, keys on show."""

from __future__ import annotations

import base64
import email.utils
import json
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

CLIENT, SECRET = "mirror-client", "client-secret"
ISSUER, AUDIENCE = "https://issuer.test", "kafka"
KEY_ID = "key-1"


def encode(data: bytes) -> str:
    """Base64 as tokens have it."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class TokenServer:
    """On loopback, over HTTP; its attributes change what it says."""

    def __init__(self, port: int = 0) -> None:
        self.requests: list[dict[str, str]] = []
        self.life_seconds = 300.0
        self.subject = "alice"
        # How many requests to fail first; a body, or a redirect, instead of an answer.
        self.failures = 0
        self.body: bytes | None = None
        self.redirect = False
        # How far its clock is ahead.
        self.skew_seconds = 0.0
        self._key = rsa.generate_private_key(65537, 2048)
        owner = self

        class Handler(BaseHTTPRequestHandler):
            """Answers in the name of the server."""

            def do_GET(self) -> None:
                owner._send(self, 200, json.dumps(owner.key_set()).encode())

            def do_POST(self) -> None:
                owner._serve(self)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Tests print nothing."""

            def date_time_string(self, timestamp: float | None = None) -> str:
                return email.utils.formatdate(time.time() + owner.skew_seconds, usegmt=True)

        self._http = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def token_url(self) -> str:
        return f"{self.url}/token"

    @property
    def keys_url(self) -> str:
        return f"{self.url}/keys"

    @staticmethod
    def nowhere() -> TokenServer:
        """One that is down."""
        server = TokenServer()
        server._http.server_close()
        return server

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5.0)

    def key_set(self) -> dict[str, Any]:
        """The public key, as brokers read it."""
        numbers = self._key.public_key().public_numbers()
        modulus = encode(numbers.n.to_bytes(256))
        key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": KEY_ID, "e": "AQAB", "n": modulus}
        return {"keys": [key]}

    def token(self, **claims: Any) -> str:
        """A signed token."""
        now = time.time() + self.skew_seconds
        times = {"iat": int(now), "nbf": int(now), "exp": int(now + self.life_seconds)}
        payload = {"iss": ISSUER, "aud": AUDIENCE, "sub": self.subject, **times, **claims}
        header = {"alg": "RS256", "typ": "JWT", "kid": KEY_ID}
        text = f"{encode(json.dumps(header).encode())}.{encode(json.dumps(payload).encode())}"
        signature = self._key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{text}.{encode(signature)}"

    def _serve(self, request: BaseHTTPRequestHandler) -> None:
        size = int(request.headers["Content-Length"])
        form = dict(urllib.parse.parse_qsl(request.rfile.read(size).decode()))
        self.requests.append(form)
        if self.failures > 0:
            self.failures -= 1
            self._send(request, 503, b"{}")
        elif self.redirect:
            self._send(request, 302, b"")
        elif not self._knows(request, form):
            self._send(request, 401, b'{"error":"invalid_client"}')
        else:
            response = json.dumps({"access_token": self.token(), "token_type": "Bearer"}).encode()
            self._send(request, 200, response if self.body is None else self.body)

    def _knows(self, request: BaseHTTPRequestHandler, form: dict[str, str]) -> bool:
        if "assertion" in form:
            return form["assertion"].count(".") == 2
        expected = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        return request.headers.get("Authorization") == f"Basic {expected}"

    def _send(self, request: BaseHTTPRequestHandler, status: int, body: bytes) -> None:
        request.send_response(status)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(body)))
        if status == 302:
            request.send_header("Location", f"{self.url}/elsewhere")
        request.end_headers()
        request.wfile.write(body)
