"""Requests between workers: which are signed, and which are rejected."""

from __future__ import annotations

import base64

import httpx
import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sparkmirror.config.worker.inter_worker import MACS, InterWorkerConfig
from sparkmirror.connect.entities import RequestError
from sparkmirror.connect.group.session_keys import OLD_KEY_MS, SessionKey
from sparkmirror.rest.rest_server import RestServer
from sparkmirror.rest.signatures import ALGORITHM, INVALID, MISSING, NO_KEY, SIGNATURE
from sparkmirror.rest.signatures import RequestSigner as Signer
from tests.rest.conftest import Serve
from tests.rest.fake_herder import FakeHerder
from tests.rest.requests import HEARTBEAT, NAME, request

KEY = SessionKey(b"k" * 32, "HmacSHA256", 1_000_000)
OTHER = SessionKey(b"o" * 32, "HmacSHA256", 2_000_000)
REQUEST = ("PUT", b"/connectors/x/pause?forward=true", b"{}")


def signer(*keys: SessionKey, config: InterWorkerConfig | None = None, now_ms: int = 0) -> Signer:
    return Signer(config or InterWorkerConfig(), lambda: keys, lambda: now_ms / 1000)


def refusal(
    checks: Signer, headers: dict[str, str], sent: tuple[str, bytes, bytes] = REQUEST
) -> tuple[int, str]:
    with pytest.raises(RequestError) as caught:
        checks.check(*sent, headers)
    return caught.value.status, caught.value.text


@pytest.mark.parametrize("algorithm", MACS)
def test_worker_accepts_what_another_has_signed(algorithm: str) -> None:
    config = InterWorkerConfig(
        signature_algorithm=algorithm, verification_algorithms=("HmacSHA256", algorithm)
    )
    both = signer(KEY, config=config)
    headers = both.headers(*REQUEST)
    assert headers[ALGORITHM] == algorithm
    both.check(*REQUEST, headers)


@pytest.mark.parametrize(
    "changed",
    [
        ("DELETE", REQUEST[1], REQUEST[2]),
        (REQUEST[0], b"/connectors/y/pause?forward=true", REQUEST[2]),
        (REQUEST[0], b"/connectors/x/pause?forward=false", REQUEST[2]),
        (REQUEST[0], REQUEST[1], b"{ }"),
    ],
)
def test_signature_holds_for_one_request_only(changed: tuple[str, bytes, bytes]) -> None:
    headers = signer(KEY).headers(*REQUEST)
    assert refusal(signer(KEY), headers, changed) == (403, INVALID)


def test_rejections_are_those_of_connect() -> None:
    headers = signer(KEY).headers(*REQUEST)
    assert refusal(signer(OTHER), headers) == (403, INVALID)
    assert refusal(signer(KEY), {**headers, SIGNATURE: "abcd"}) == (403, INVALID)
    assert refusal(signer(KEY), {**headers, SIGNATURE: "\xe9?"}) == (403, INVALID)
    assert refusal(signer(KEY), {}) == (400, MISSING)
    assert refusal(signer(KEY), {SIGNATURE: headers[SIGNATURE]}) == (400, MISSING)
    assert refusal(signer(), headers) == (503, NO_KEY)
    status, text = refusal(signer(KEY), {**headers, ALGORITHM: "HmacMD5"})
    assert status == 400
    assert "does not support the 'HmacMD5'" in text
    assert "[HmacSHA256]" in text


def test_key_before_the_newest_counts_for_a_minute() -> None:
    old = signer(KEY).headers(*REQUEST)
    rotated = OTHER.created_ms
    signer(OTHER, KEY, now_ms=rotated + OLD_KEY_MS - 1).check(*REQUEST, old)
    late = signer(OTHER, KEY, now_ms=rotated + OLD_KEY_MS)
    assert refusal(late, old) == (403, INVALID)


def test_key_that_the_leader_is_writing_counts_at_once() -> None:
    new = signer(OTHER).headers(*REQUEST)
    leader = signer(KEY, OTHER, now_ms=OTHER.created_ms + 10 * OLD_KEY_MS)
    leader.check(*REQUEST, new)


def test_leader_takes_what_a_follower_forwards(serve: Serve, herder: FakeHerder) -> None:
    leader = serve(herder, signer=signer(KEY))
    follower = serve(FakeHerder(leader), signer=signer(KEY))
    body = {"name": NAME, "config": HEARTBEAT}
    assert request(follower, "POST", "/connectors", body).status_code == 201
    odd = {**HEARTBEAT, "name": "odd ?#; name"}
    path = "/connectors/odd%20%3F%23%3B%20name/config?a=%C3%A9&b=+%2B"
    assert request(follower, "PUT", path, odd).status_code == 201
    assert request(follower, "DELETE", "/connectors/a-%3Eb.h").status_code == 204
    assert herder.connectors() == ["odd ?#; name"]


def test_second_hop_is_signed_again(serve: Serve, herder: FakeHerder) -> None:
    first, second = FakeHerder(), FakeHerder()
    second.leader_url = serve(herder, signer=signer(KEY))
    first.leader_url = serve(second, signer=signer(KEY))
    url = serve(first, signer=signer(KEY))
    assert request(url, "PUT", f"/connectors/{NAME}/config", HEARTBEAT).status_code == 201


def test_leader_rejects_workers_of_another_group(serve: Serve, herder: FakeHerder) -> None:
    leader = serve(herder, signer=signer(OTHER))
    follower = serve(FakeHerder(leader), signer=signer(KEY))
    response = request(follower, "DELETE", "/connectors/x")
    assert (response.status_code, response.json()["message"]) == (403, INVALID)
    assert herder.asked == []


@pytest.mark.parametrize(
    ("query", "headers", "status"),
    [
        ("?forward=true", {}, 400),
        ("?forward=TRUE", {}, 400),
        ("", {SIGNATURE: "abcd", ALGORITHM: "HmacSHA256"}, 403),
        ("?forward=false", {SIGNATURE: "abcd", ALGORITHM: "HmacSHA256"}, 403),
        ("?forward=false", {}, 404),
        ("", {}, 404),
    ],
)
def test_who_claims_to_be_a_worker_must_prove_it(
    serve: Serve, herder: FakeHerder, query: str, headers: dict[str, str], status: int
) -> None:
    url = serve(herder, signer=signer(KEY))
    response = request(url, "DELETE", f"/connectors/x{query}", headers=headers)
    assert response.status_code == status
    assert bool(herder.asked) == (status == 404)


def test_follower_waits_for_the_first_key(serve: Serve, herder: FakeHerder) -> None:
    looks: list[int] = []

    def keys() -> tuple[SessionKey, ...]:
        looks.append(1)
        return (KEY,) if len(looks) > 2 else ()

    leader = serve(herder, signer=signer(KEY))
    follower = serve(FakeHerder(leader), signer=Signer(InterWorkerConfig(), keys))
    response = request(follower, "PUT", f"/connectors/{NAME}/config", HEARTBEAT)
    assert response.status_code == 201


def test_headers_are_those_of_connect(serve: Serve) -> None:
    seen: list[httpx.Headers] = []

    async def leader(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(httpx.Headers(scope["headers"]))
        await Response(status_code=204)(scope, receive, send)

    with RestServer([("127.0.0.1", 0)]).start(leader) as server:
        follower = serve(FakeHerder(f"http://127.0.0.1:{server.ports[0]}/"), signer=signer(KEY))
        request(follower, "DELETE", "/connectors/x")
    assert seen[0]["X-Connect-Request-Signature-Algorithm"] == "HmacSHA256"
    assert len(base64.b64decode(seen[0]["X-Connect-Authorization"])) == 32
