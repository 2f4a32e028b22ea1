"""What the REST layer itself decides, route by route."""

from __future__ import annotations

import threading
from typing import Any, cast

import httpx
import pytest

from sparkmirror.connect.entities import RequestError, TargetState
from sparkmirror.rest.routes import ROUTES, Route
from tests.golden_rest.odd_requests import exchange_bytes
from tests.rest.conftest import Serve
from tests.rest.fake_herder import FakeHerder
from tests.rest.requests import HEARTBEAT, NAME, request

_BODIES: dict[str, Any] = {
    "": None,
    "CreateRequest": {"name": "x", "config": HEARTBEAT},
    "Config": HEARTBEAT,
    "Offsets": {"offsets": [{"partition": {"cluster": "a"}, "offset": {"offset": 1}}]},
    "Level": {"level": "INFO"},
}
_PUBLIC = [route for route in ROUTES if not route.handler.__name__.startswith("refuse_")]


def _path(route: Route) -> str:
    path = route.path.replace("{connector}", "x").replace("{task}", "0")
    return path.replace("{plugin}", "MirrorHeartbeat").replace("{logger}", "root")


class _Broken:
    """A herder with a bug in every method; it reports ready once, or nothing would be asked."""

    def __init__(self, error: Exception) -> None:
        self._error = error
        self._is_new = True

    def health(self) -> tuple[str, str]:
        if not self._is_new:
            raise self._error
        self._is_new = False
        return "healthy", "ready"

    def __getattr__(self, name: str) -> Any:
        def fail(*args: object, **options: object) -> None:
            raise self._error

        return fail


def _broken(error: Exception) -> FakeHerder:
    return cast("FakeHerder", _Broken(error))


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (RuntimeError("boom"), 500, "boom"),
        (KeyError(), 500, "KeyError"),
        (RequestError(409, "no"), 409, "no"),
    ],
    ids=["bug", "bug without a text", "refusal"],
)
def test_every_route_returns_errors_in_one_shape(
    serve: Serve, error: Exception, status: int, text: str
) -> None:
    url = serve(_broken(error))
    request(url, "GET", "/connectors")  # it looks whether the worker is ready
    for route in _PUBLIC:
        response = request(url, route.method, _path(route), _BODIES[route.body])
        assert (response.status_code, response.json(), response.headers["content-type"]) == (
            status,
            {"error_code": status, "message": text},
            "application/json",
        ), route.path


def test_every_route_rejects_other_media_types(serve: Serve, herder: FakeHerder) -> None:
    url = serve(herder)
    for route in ROUTES:
        if route.path in ("/", "/health"):
            continue
        response = request(url, route.method, _path(route), "a=b", content_type="text/plain")
        assert response.status_code == 415, route.path
        assert response.json() == {
            "error_code": 415,
            "message": "HTTP 415 Unsupported Media Type",
        }
        assert "content-type" not in response.headers
    assert herder.asked == []


def test_every_path_says_what_it_allows(serve: Serve, herder: FakeHerder) -> None:
    url = serve(herder)
    for route in ROUTES:
        allowed = request(url, "OPTIONS", _path(route)).headers["allow"].split(",")
        assert route.method in allowed
        assert "OPTIONS" in allowed
        assert ("HEAD" in allowed) == ("GET" in allowed)
        for method in {"GET", "PUT", "POST", "DELETE", "PATCH"} - set(allowed):
            response = request(url, method, _path(route))
            assert response.status_code == 405, (method, route.path)
            assert response.json()["message"] == "HTTP 405 Method Not Allowed"


def test_head_is_get_without_a_body(client: httpx.Client) -> None:
    response = client.head("/connectors")
    assert (response.status_code, response.content) == (200, b"")
    assert response.headers["content-length"] == "2"


def test_slow_request_times_out(serve: Serve, herder: FakeHerder) -> None:
    herder.gate.clear()
    url = serve(herder, request_timeout_seconds=0.2)
    response = request(url, "DELETE", "/connectors/x")
    herder.gate.set()
    assert (response.status_code, response.json()) == (
        500,
        {"error_code": 500, "message": "Request timed out"},
    )


@pytest.mark.parametrize(
    ("status", "code"), [("healthy", 200), ("starting", 503), ("unhealthy", 500)]
)
def test_health_has_its_own_statuses(
    client: httpx.Client, herder: FakeHerder, status: str, code: int
) -> None:
    herder.health_answer = (status, "so it is")
    response = client.get("/health")
    assert response.status_code == code
    assert response.json() == {"status": status, "message": "so it is"}


def test_health_is_bad_when_the_herder_hangs(serve: Serve) -> None:
    release = threading.Event()

    class Hanging(FakeHerder):
        """Does not say how it is."""

        def health(self) -> tuple[str, str]:
            release.wait(20)
            return super().health()

    response = request(serve(Hanging(), health_timeout_seconds=0.2), "GET", "/health")
    release.set()
    assert (response.status_code, response.json()["status"]) == (500, "unhealthy")


def test_requests_wait_for_a_worker_that_is_starting(serve: Serve, herder: FakeHerder) -> None:
    herder.health_answer = ("starting", "Worker is still starting up.")
    url = serve(herder)
    assert request(url, "GET", "/").status_code == 200
    assert request(url, "GET", "/health").status_code == 503
    answers: list[int] = []
    waiting = threading.Thread(
        target=lambda: answers.append(request(url, "GET", "/connectors").status_code)
    )
    waiting.start()
    waiting.join(0.3)
    assert answers == []
    herder.health_answer = ("healthy", "ready")
    waiting.join(10)
    assert answers == [200]


def test_request_to_a_worker_that_does_not_start_times_out(serve: Serve) -> None:
    herder = FakeHerder()
    herder.health_answer = ("starting", "Worker is still starting up.")
    response = request(serve(herder, request_timeout_seconds=0.2), "GET", "/connectors")
    assert (response.status_code, response.json()["message"]) == (500, "Request timed out")


@pytest.mark.parametrize("host", ["[::1", "a b", "<script>", "connect:8083"])
def test_any_host_header_will_do(client: httpx.Client, host: str) -> None:
    data = f"GET /connectors/nope HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    assert exchange_bytes(str(client.base_url), data.encode()).startswith(b"HTTP/1.1 404")


def test_page_about_a_bad_request_repeats_nothing_dangerous(client: httpx.Client) -> None:
    data = b"PUT /connectors/x/pause HTTP/1.1\r\nHost: <script>\r\nContent-Type: odd\r\n"
    response = exchange_bytes(str(client.base_url), data + b"Connection: close\r\n\r\n")
    assert response.startswith(b"HTTP/1.1 400")
    assert b"<script>" not in response
    assert b"&lt;script&gt;" in response


def test_settings_become_strings_and_are_echoed(client: httpx.Client, herder: FakeHerder) -> None:
    body = (
        '{"connector.class":"MirrorHeartbeatConnector","source.cluster.alias":"a","int":1,'
        '"float":1.50,"exp":1E5,"big":123456789012345678901234567890,"yes":true,"no":false,'
        '"text":" kept ","empty":""}'
    )
    response = request(client.base_url, "PUT", "/connectors/x/config", body)
    assert response.status_code == 201
    assert herder.connector_info("x").config == {
        "connector.class": "MirrorHeartbeatConnector",
        "source.cluster.alias": "a",
        "int": "1",
        "float": "1.50",
        "exp": "1E5",
        "big": "123456789012345678901234567890",
        "yes": "true",
        "no": "false",
        "text": " kept ",
        "empty": "",
        "name": "x",
    }
    assert client.get("/connectors/x/config").json() == herder.connector_info("x").config


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("running", TargetState.STARTED),
        ("Paused", TargetState.PAUSED),
        ("STOPPED", TargetState.STOPPED),
        (None, None),
    ],
)
def test_initial_states(serve: Serve, text: str | None, state: TargetState | None) -> None:
    seen: list[TargetState | None] = []

    class Noting(FakeHerder):
        """Notes the state."""

        def create(self, name: str, config: Any, initial_state: TargetState | None) -> Any:
            seen.append(initial_state)
            return super().create(name, config, initial_state)

    body = {"name": NAME, "config": HEARTBEAT, "initial_state": text}
    assert request(serve(Noting()), "POST", "/connectors", body).status_code == 201
    assert seen == [state]


@pytest.mark.parametrize(
    "query",
    ["includeTasks=True", "includeTasks=TRUE&onlyFailed=no", "includeTasks=true&includeTasks=x"],
)
def test_booleans_are_read_as_java_reads_them(
    client: httpx.Client, herder: FakeHerder, query: str
) -> None:
    herder.put_config("x", HEARTBEAT)
    assert client.post(f"/connectors/x/restart?{query}").status_code == 202
    assert herder.asked[-1] == "restart True False"


_NAMES = {
    "plain": "plain",
    "a-%3Eb.h": "a->b.h",
    "two%20words": "two words",
    "plus+stays": "plus+stays",
    "%E4%BD%A0": "\u4f60",
    "q%3Fh%23": "q?h#",
    "semi%3Bcolon": "semi;colon",
    "%7Bbraces%7D": "{braces}",
    "~!@$&'()*,:=": "~!@$&'()*,:=",
    "%7Cpipe%22": '|pipe"',
}


@pytest.mark.parametrize(("sent", "name"), _NAMES.items(), ids=list(_NAMES))
def test_names_are_decoded_once(
    client: httpx.Client, herder: FakeHerder, sent: str, name: str
) -> None:
    created = request(client.base_url, "PUT", f"/connectors/{sent}/config", HEARTBEAT)
    assert created.status_code == 201
    assert herder.connectors() == [name]
    # The address in the response leads to the connector.
    found = request(
        client.base_url, "GET", httpx.URL(created.headers["location"]).raw_path.decode()
    )
    assert found.json()["name"] == name
    assert request(client.base_url, "PUT", f"/connectors/{sent}/pause").status_code == 202
    assert request(client.base_url, "DELETE", f"/connectors/{sent}/").status_code == 204


def test_large_body_is_accepted(client: httpx.Client, herder: FakeHerder) -> None:
    config = {**HEARTBEAT, "large": "x" * 10_000_000}
    assert request(client.base_url, "PUT", "/connectors/x/config", config).status_code == 201
    assert len(herder.connector_info("x").config["large"] or "") == 10_000_000


def test_many_large_bodies_at_once_are_read_a_few_at_a_time(
    client: httpx.Client, herder: FakeHerder
) -> None:
    config = {**HEARTBEAT, "large": "x" * 1_000_000}
    url = client.base_url
    answers: list[int] = []

    def send() -> None:
        answers.append(request(url, "PUT", "/connectors/x/config", config).status_code)

    threads = [threading.Thread(target=send) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(answers) == [200] * 19 + [201]


def test_too_large_body_is_rejected(serve: Serve, herder: FakeHerder) -> None:
    url = serve(herder, max_body_bytes=1000)
    response = request(url, "PUT", "/connectors/x/config", {"a": "x" * 2000})
    assert (response.status_code, response.json()["message"]) == (
        413,
        "HTTP 413 Request Entity Too Large",
    )


def test_unwanted_large_body_gets_a_response(client: httpx.Client) -> None:
    body = b"x" * 5_000_000
    response = request(client.base_url, "POST", "/connectors", body, content_type="text/plain")
    assert response.status_code == 415
    assert request(client.base_url, "POST", "/nope", body).status_code == 404


def test_deep_nesting_is_rejected(client: httpx.Client) -> None:
    body = '{"offsets":[{"partition":{"a":' + "[" * 50_000
    response = request(client.base_url, "PATCH", "/connectors/x/offsets", body)
    assert response.status_code == 500
    assert "has more than 1000 levels" in response.json()["message"]


@pytest.mark.parametrize("body", [None, "", "garbage", "{}", '{"a":1}'])
def test_pause_does_not_look_at_a_body(
    client: httpx.Client, herder: FakeHerder, body: str | None
) -> None:
    herder.put_config("x", HEARTBEAT)
    assert request(client.base_url, "PUT", "/connectors/x/pause", body).status_code == 202


def test_topics_can_be_kept_secret(serve: Serve, herder: FakeHerder) -> None:
    untracked = serve(herder, topic_tracking=False)
    response = request(untracked, "GET", "/connectors/x/topics")
    assert (response.status_code, response.json()["message"]) == (
        403,
        "Topic tracking is disabled.",
    )
    response = request(untracked, "PUT", "/connectors/x/topics/reset")
    assert (response.status_code, response.json()["message"]) == (
        403,
        "Topic tracking is disabled.",
    )
    response = request(
        serve(herder, topic_tracking_reset=False), "PUT", "/connectors/x/topics/reset"
    )
    assert (response.status_code, response.json()["message"]) == (
        403,
        "Topic tracking reset is disabled.",
    )


def test_admin_can_be_elsewhere(serve: Serve, herder: FakeHerder) -> None:
    main, admin = serve(herder, admin=False), serve(herder, main=False)
    assert request(main, "GET", "/admin/loggers").status_code == 404
    assert request(main, "GET", "/connectors").status_code == 200
    assert request(admin, "GET", "/admin/loggers").status_code == 200
    assert request(admin, "GET", "/connectors").status_code == 404


def test_duplicate_partitions_in_offsets_the_last_counts(
    client: httpx.Client, herder: FakeHerder
) -> None:
    herder.put_config("x", HEARTBEAT)
    herder.set_target_state("x", TargetState.STOPPED)
    rows = [
        {"partition": {"cluster": "a", "topic": "t"}, "offset": {"offset": number}}
        for number in (1, 2)
    ]
    response = request(client.base_url, "PATCH", "/connectors/x/offsets", {"offsets": rows})
    assert response.status_code == 200
    assert herder.offsets("x") == [({"cluster": "a", "topic": "t"}, {"offset": 2})]


def test_internal_requests_are_rejected(client: httpx.Client) -> None:
    for method, path in (("POST", "tasks"), ("PUT", "fence")):
        response = request(client.base_url, method, f"/connectors/x/{path}", "[]")
        assert response.status_code == 400
        assert response.json()["message"] == "Internal request missing required signature"


def test_garbage_instead_of_http_gets_a_response(client: httpx.Client) -> None:
    assert exchange_bytes(str(client.base_url), b"nonsense\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert client.get("/").status_code == 200


def test_cross_origin_headers(serve: Serve, herder: FakeHerder) -> None:
    url = serve(herder, allow_origin="http://good.example", allow_methods="GET,PUT")
    good = {"Origin": "http://good.example"}
    response = request(url, "GET", "/", headers=good)
    assert response.headers["access-control-allow-origin"] == "http://good.example"
    bad = request(url, "GET", "/", headers={"Origin": "http://evil.example"})
    assert "access-control-allow-origin" not in bad.headers
    asked = {**good, "Access-Control-Request-Method": "PUT"}
    preflight = request(url, "OPTIONS", "/connectors", headers=asked)
    assert preflight.headers["access-control-allow-methods"] == "GET,PUT"
