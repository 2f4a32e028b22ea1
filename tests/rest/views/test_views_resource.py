"""GET /sparkmirror/...: parameters, errors, roles, and requests of other workers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from sparkmirror.config.worker.inter_worker import InterWorkerConfig
from sparkmirror.connect.group.session_keys import SessionKey
from sparkmirror.monitoring.gathering.worker_figures import decode_figures
from sparkmirror.monitoring.monitored import MonitoredGroup
from sparkmirror.rest.request import RestOptions
from sparkmirror.rest.security.users import Users
from sparkmirror.rest.signatures import RequestSigner
from sparkmirror.rest.views.peer_client import FIGURES, PeerClient, PeerSilent
from tests.monitoring.views.fakes import FLOW, Scene, lag
from tests.rest.conftest import Serve
from tests.rest.fake_herder import FakeHerder
from tests.rest.requests import HEARTBEAT

KEY = SessionKey(b"secret-of-the-group", "HmacSHA256", 0)


@pytest.fixture
def scene() -> Scene:
    made = Scene()
    made.add_source("orders-0")
    made.lags.lags = [lag()]
    return made


def client_of(url: str, user: str = "") -> httpx.Client:
    auth = httpx.BasicAuth(user, f"{user}-password") if user else None
    return httpx.Client(base_url=url, timeout=20, trust_env=False, verify=False, auth=auth)


@pytest.fixture
def client(serve: Serve, herder: FakeHerder, scene: Scene) -> Iterator[httpx.Client]:
    with client_of(serve(herder, views=scene.views)) as made:
        yield made


def test_a_view_is_json_that_is_not_cached(client: httpx.Client) -> None:
    found = client.get("/sparkmirror/overview")
    assert found.status_code == 200
    assert found.headers["cache-control"] == "no-store"
    assert found.json()["flows"][0]["flow"] == FLOW
    assert client.head("/sparkmirror/overview").status_code == 200
    assert client.post("/sparkmirror/overview").status_code == 405


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("topics?flow=x", 404, "no flow 'x'; flows: a->b"),
        ("topics?state=odd", 400, "state=odd: use one of all"),
        ("topics?limit=-1", 400, "limit=-1: use a whole number"),
        ("topics?limit=" + "9" * 5000, 400, "limit=9999"),
        ("topics?q=" + "x" * 2000, 400, "1,000 are allowed"),
        ("topics?q=/[/", 400, "is no pattern"),
        ("flow", 400, "the parameter flow is missing"),
        ("history?flow=a-%3Eb&range=2h", 400, "range=2h: use one of 15m"),
        ("failover?source=a", 400, "the parameter target is missing"),
        ("failover?source=a&target=x", 404, "no flow 'a->x'"),
        ("group?flow=a-%3Eb&group=g", 404, "follows no group 'g'"),
        ("events?kind=odd", 400, "kind=odd"),
        ("nothing", 404, "HTTP 404"),
    ],
)
def test_errors_say_what_is_wrong(
    client: httpx.Client, path: str, status: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparkmirror.monitoring.views.views.GROUPS_WAIT_SECONDS", 0.0)
    found = client.get(f"/sparkmirror/{path}")
    assert found.status_code == status
    assert found.json()["error_code"] == status
    assert words in found.json()["message"]


def test_without_views_there_is_no_such_path(serve: Serve, herder: FakeHerder) -> None:
    with client_of(serve(herder)) as plain:
        assert plain.get("/sparkmirror/overview").status_code == 404
        assert plain.get("/ui/").status_code == 404


def test_the_description_has_the_views(client: httpx.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert "/sparkmirror/overview" in paths
    assert [each["name"] for each in paths["/sparkmirror/failover"]["get"]["parameters"]] == [
        "source",
        "target",
    ]


def test_everyone_is_an_operator_where_nobody_logs_in(client: httpx.Client) -> None:
    who = client.get("/sparkmirror/overview").json()["who"]
    assert who == {"name": "", "role": "operator", "authenticated": False}


def test_the_role_is_that_of_the_login(
    serve: Serve, herder: FakeHerder, scene: Scene, tmp_path: Path
) -> None:
    path = tmp_path / "users"
    path.write_text("ops: ops-password\nguest: guest-password\n")
    users = Users(path, frozenset({"guest"}))
    url = serve(herder, views=scene.views, users=users, is_open=False)
    with client_of(url) as nobody:
        assert nobody.get("/sparkmirror/overview").status_code == 401
        assert nobody.get(FIGURES).status_code == 401
    for name, role in (("ops", "operator"), ("guest", "viewer")):
        with client_of(url, name) as known:
            who = known.get("/sparkmirror/overview").json()["who"]
            assert who == {"name": name, "role": role, "authenticated": True}


def signer_of(*keys: SessionKey) -> RequestSigner:
    return RequestSigner(InterWorkerConfig(), lambda: keys)


def group_of(*keys: SessionKey) -> MonitoredGroup:
    configs = SimpleNamespace(session_keys=lambda: keys)
    file = SimpleNamespace(inter_worker=InterWorkerConfig())
    cluster = SimpleNamespace(configs=configs, file=file)
    return MonitoredGroup("", cluster, None)  # type: ignore[arg-type]


def test_other_workers_need_no_login_but_the_groups_key(
    serve: Serve, herder: FakeHerder, scene: Scene, tmp_path: Path
) -> None:
    path = tmp_path / "users"
    path.write_text("ops: ops-password\n")
    options = {"views": scene.views, "users": Users(path, frozenset()), "signer": signer_of(KEY)}
    url = serve(herder, **options)
    peers = PeerClient(None)
    found = decode_figures(peers.figures_of(group_of(KEY), f"{url}/"))
    assert found.partitions[0].source.topic == "orders"
    other = SessionKey(b"another-secret-entirely", "HmacSHA256", 0)
    with pytest.raises(PeerSilent, match="HTTP 403"):
        peers.figures_of(group_of(other), url)
    with pytest.raises(PeerSilent, match="HTTP 401"):
        peers.figures_of(group_of(), url)
    with pytest.raises(PeerSilent, match="no answer"):
        peers.figures_of(group_of(KEY), "http://127.0.0.1:1/")
    with pytest.raises(PeerSilent, match="no REST API"):
        peers.figures_of(group_of(KEY), "host/123")
    peers.close()


def test_a_signature_opens_the_figures_and_nothing_else(
    serve: Serve, herder: FakeHerder, scene: Scene, tmp_path: Path
) -> None:
    path = tmp_path / "users"
    path.write_text("ops: ops-password\n")
    signer = signer_of(KEY)
    users = Users(path, frozenset())
    with client_of(serve(herder, views=scene.views, users=users, signer=signer)) as outside:
        for target in ("/sparkmirror/overview?", "/connectors?"):
            headers = signer.headers("GET", target.encode(), b"")
            assert outside.get(target.rstrip("?"), headers=headers).status_code == 401


def test_options_without_anything_to_show_are_as_before() -> None:
    options = RestOptions()
    assert (options.views, options.streams, options.files) == (None, None, None)


def test_who_changed_something_is_an_event(
    serve: Serve, herder: FakeHerder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "users"
    path.write_text("ops: ops-password\nguest: guest-password\n")
    users = Users(path, frozenset({"guest"}))
    url = serve(herder, users=users, is_open=False)
    with caplog.at_level("INFO"), client_of(url, "ops") as ops, client_of(url, "guest") as guest:
        config = {"name": "x", "config": {**HEARTBEAT, "name": "x"}}
        assert ops.post("/connectors", json=config).status_code == 201
        assert ops.put("/connectors/x/pause").status_code == 202
        assert ops.put("/connectors/nothing/pause").status_code == 404
        assert guest.put("/connectors/x/resume").status_code == 403
    marks = [record.event for record in caplog.records if hasattr(record, "event")]
    assert [(mark.user, mark.connector) for mark in marks] == [("ops", ""), ("ops", "x")]
    assert "ops over REST: pause a connector and its tasks: x" in caplog.text
