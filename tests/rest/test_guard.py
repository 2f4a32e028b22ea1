"""Which requests may come in: passwords, readers, pages of other sites, limits."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from sparkmirror.rest.security.users import User, Users
from sparkmirror.rest.transport.headers import SAFE_HEADERS
from tests.rest.conftest import Serve
from tests.rest.fake_herder import FakeHerder
from tests.rest.requests import HEARTBEAT, NAME, request
from tests.rest.security.test_users import basic, quick_hash

ADMIN = {"authorization": basic("admin:all-of-it")}
READER = {"authorization": basic("reader:a-look")}
WRONG = {"authorization": basic("admin:a-look")}


@pytest.fixture
def users(tmp_path: Path) -> Users:
    path = tmp_path / "users.properties"
    path.write_text(f"admin: {quick_hash('all-of-it')}\nreader: a-look\n")
    return Users(path, ["reader"])


@pytest.fixture
def url(serve: Serve, herder: FakeHerder, users: Users) -> str:
    return serve(herder, users=users)


# Responses of a genuine worker (4.3.1) with its extension for basic authentication.
_JSON, _TEXT = "application/json", "text/plain"


@pytest.mark.parametrize(
    ("method", "path", "login", "status", "content_type"),
    [
        ("GET", "/connectors", None, 401, _JSON),
        ("GET", "/connectors", basic("admin:wrong"), 401, _JSON),
        ("GET", "/connectors", basic("carol:all-of-it"), 401, _JSON),
        ("GET", "/connectors", basic("admin:"), 401, _JSON),
        ("GET", "/connectors", basic("admin:all-of-it:x"), 401, _JSON),
        ("GET", "/connectors", "Bearer x", 401, _JSON),
        ("GET", "/connectors", basic("admin:all-of-it").replace("B", "b", 1), 200, _JSON),
        ("GET", "/health", None, 401, _JSON),
        ("HEAD", "/connectors", None, 401, _JSON),
        ("OPTIONS", "/connectors", None, 401, _TEXT),
        ("GET", "/connectors//x", None, 400, "text/html;charset=iso-8859-1"),
    ],
)
def test_logins_get_a_genuine_workers_responses(
    url: str, *, method: str, path: str, login: str | None, status: int, content_type: str
) -> None:
    headers = {} if login is None else {"authorization": login}
    response = request(url, method, path, headers=headers)
    assert (response.status_code, response.headers["content-type"]) == (status, content_type)
    if status == 401:
        assert response.text == ("" if method == "HEAD" else "User cannot access the resource.")
        assert response.headers["content-length"] == "32"


@pytest.mark.parametrize("headers", [None, WRONG, {"authorization": "Bearer x"}])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/health"),
        ("GET", "/connectors"),
        ("POST", "/connectors"),
        ("GET", "/admin/loggers"),
        ("GET", "/openapi.json"),
        ("GET", "/nope"),
        ("OPTIONS", "/"),
    ],
)
def test_nothing_is_served_without_a_login(
    url: str, method: str, path: str, headers: dict[str, str] | None
) -> None:
    response = request(url, method, path, headers=headers)
    assert (response.status_code, response.text) == (401, "User cannot access the resource.")
    assert response.headers["www-authenticate"] == 'Basic realm="KafkaConnect"'


def test_with_a_login_everything_is_as_without_users(
    url: str, serve: Serve, herder: FakeHerder
) -> None:
    for path in ("/", "/connectors", "/connectors/nope", "/nope", "/connectors/a%2fb"):
        secured = request(url, "GET", path, headers=ADMIN)
        plain = request(serve(herder), "GET", path)
        assert (secured.status_code, secured.content) == (plain.status_code, plain.content)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/connectors", None, 200),
        ("HEAD", "/connectors", None, 200),
        ("OPTIONS", "/connectors", None, 200),
        ("GET", "/admin/loggers", None, 200),
        ("POST", "/connectors", {"name": NAME, "config": HEARTBEAT}, 403),
        ("PUT", f"/connectors/{NAME}/config", HEARTBEAT, 403),
        ("DELETE", "/connectors/x", None, 403),
        ("PUT", "/admin/loggers/root", {"level": "DEBUG"}, 403),
        # It resolves placeholders of files, which are not for everybody.
        ("PUT", "/connector-plugins/MirrorHeartbeatConnector/config/validate", HEARTBEAT, 403),
    ],
)
def test_readers_look_and_change_nothing(
    url: str, herder: FakeHerder, *, method: str, path: str, body: object, status: int
) -> None:
    response = request(url, method, path, body, headers=READER)
    assert response.status_code == status
    if status == 403:
        assert response.json() == {"error_code": 403, "message": "User reader may only read."}
        assert not herder.asked


def test_who_writes_may_write(url: str) -> None:
    created = request(url, "PUT", f"/connectors/{NAME}/config", HEARTBEAT, headers=ADMIN)
    assert created.status_code == 201


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 404),
        ("http://evil.example", 403),
        ("null", 403),
        ("http://good.example", 404),
        ("", 404),
    ],
)
def test_pages_of_other_sites_change_nothing(
    serve: Serve, herder: FakeHerder, users: Users, origin: str | None, status: int
) -> None:
    url = serve(herder, users=users, allow_origin="http://good.example")
    headers = ADMIN | ({} if origin is None else {"origin": origin or url})
    assert request(url, "DELETE", "/connectors/x", headers=headers).status_code == status


def test_browsers_may_ask_without_a_password_what_allowed_pages_may_do(
    serve: Serve, herder: FakeHerder, users: Users
) -> None:
    url = serve(herder, users=users, allow_origin="http://good.example")
    asks = {"access-control-request-method": "PUT"}
    good = request(url, "OPTIONS", "/connectors", headers=asks | {"origin": "http://good.example"})
    assert good.status_code == 200
    assert good.headers["access-control-allow-origin"] == "http://good.example"
    other = request(url, "OPTIONS", "/connectors", headers=asks | {"origin": "http://evil.example"})
    assert other.status_code == 401


def test_after_some_wrong_passwords_the_next_is_not_even_looked_at(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert request(url, "GET", "/", headers=READER).status_code == 200
    with caplog.at_level(logging.WARNING):
        responses = [request(url, "GET", "/", headers=WRONG)]
        while responses[-1].status_code == 401 and len(responses) < 60:
            responses.append(request(url, "GET", "/", headers=WRONG))
    *refused, last = responses
    assert len(refused) >= 10
    assert last.status_code == 429
    assert last.json() == {"error_code": 429, "message": "Too many wrong passwords."}
    assert int(last.headers["retry-after"]) >= 1
    assert caplog.messages[0] == "login to the REST API from 127.0.0.1 rejected"
    # Users who have logged in before are not affected.
    assert request(url, "GET", "/", headers=READER).status_code == 200


class GatheredUsers(Users):
    """Looks at the first password when `expected` requests have come in."""

    def __init__(self, path: Path, expected: int) -> None:
        super().__init__(path)
        self.logins = 0
        self._expected = expected
        self._seen = 0
        self._are_all_here = threading.Event()

    def known(self, authorization: str) -> User | None:
        self._seen += 1
        if self._seen >= self._expected:
            self._are_all_here.set()
        return super().known(authorization)

    def login(self, authorization: str) -> User | None:
        self.logins += 1
        assert self._are_all_here.wait(20)
        return super().login(authorization)


def ask_at_once(url: str, headers: Sequence[dict[str, str]]) -> list[int]:
    """The status of each response."""
    with ThreadPoolExecutor(len(headers)) as pool:
        responses = pool.map(lambda each: request(url, "GET", "/", headers=each), headers)
        return [reply.status_code for reply in responses]


def test_wrong_passwords_at_once_are_limited_as_one_after_the_other(
    serve: Serve, herder: FakeHerder, tmp_path: Path
) -> None:
    (tmp_path / "users").write_text("admin: all-of-it\n")
    users = GatheredUsers(tmp_path / "users", 60)
    url = serve(herder, users=users)
    began = time.monotonic()
    guesses = [{"authorization": basic(f"admin:{at}")} for at in range(60)]
    statuses = ask_at_once(url, guesses)
    came_back = (time.monotonic() - began) / 2  # one in two seconds
    assert set(statuses) == {401, 429}
    assert users.logins == statuses.count(401) <= 11 + came_back


def test_many_requests_at_once_with_the_correct_password_all_succeed(
    serve: Serve, herder: FakeHerder, tmp_path: Path
) -> None:
    (tmp_path / "users").write_text("admin: all-of-it\n")
    users = GatheredUsers(tmp_path / "users", 30)
    url = serve(herder, users=users)
    assert ask_at_once(url, [ADMIN] * 30) == [200] * 30
    assert users.logins == 1


def test_no_login_at_all_is_not_a_wrong_one(url: str) -> None:
    for _ in range(15):
        assert request(url, "GET", "/").status_code == 401
    assert request(url, "GET", "/", headers=ADMIN).status_code == 200


def test_requests_beyond_the_limit_have_to_wait(serve: Serve, herder: FakeHerder) -> None:
    url = serve(herder, max_requests_per_second=5)
    with httpx.Client(base_url=url, trust_env=False, verify=False) as client:
        responses = [client.get("/connectors") for _ in range(40)]
    assert [response.status_code for response in responses[:5]] == [200] * 5
    refused = [response for response in responses if response.status_code == 429]
    assert len(refused) >= 5
    assert refused[0].json() == {"error_code": 429, "message": "Too many requests."}
    assert refused[0].headers["retry-after"] == "1"


def test_body_of_a_rejected_request_is_read(url: str) -> None:
    response = request(url, "POST", "/connectors", b"x" * 3_000_000)
    assert response.status_code == 401


def test_responses_behind_a_password_have_protective_headers(
    url: str, serve: Serve, herder: FakeHerder
) -> None:
    for headers in (ADMIN, None):
        response = request(url, "GET", "/connectors", headers=headers)
        for name, value in SAFE_HEADERS:
            assert response.headers.get_list(name) == [value]
    assert "x-frame-options" not in request(serve(herder), "GET", "/connectors").headers


def test_password_of_a_wrong_login_is_not_logged(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        request(url, "GET", "/", headers={"authorization": basic("admin:planted-secret")})
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("spark")]
    assert ours
    assert not [text for text in ours if "planted-secret" in text or "cGxhbnRlZC" in text]
