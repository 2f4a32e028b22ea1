"""What a worker's file says about its REST API, and what is made of it."""

from __future__ import annotations

import logging
import socket
import threading
from pathlib import Path

import pytest

from sparkmirror.cli import main, serving, worker
from sparkmirror.config.worker.rest_security import BASIC_AUTH
from sparkmirror.errors import ConfigError, TransportError
from sparkmirror.rest.security.login_config import LOGIN_MODULE
from tests.certificates import Certificates
from tests.config.worker_files import SMALLEST, worker_with


def test_admin_has_a_server_and_options_of_its_own() -> None:
    file = worker_with(
        {
            "listeners": "http://127.0.0.1:0",
            "admin.listeners": "http://127.0.0.1:0",
            "access.control.allow.origin": "*",
            "rest.max.request.bytes": "4096",
            "rest.max.requests.per.second": "7",
        }
    )
    (_, main), (_, admin) = serving._servers(file, None)
    assert (main.main, main.admin, main.allow_origin) == (True, False, "*")
    assert (admin.main, admin.admin, admin.allow_origin) == (False, True, "")
    for options in (main, admin):
        assert (options.max_body_bytes, options.max_requests_per_second) == (4096, 7)


def test_without_admin_listeners_one_server_has_all() -> None:
    ((_, options),) = serving._servers(worker_with({}), None)
    assert (options.main, options.admin) == (True, True)
    ((_, options),) = serving._servers(worker_with({"admin.listeners": ""}), None)
    assert (options.main, options.admin) == (True, False)


@pytest.mark.parametrize(
    ("props", "url"),
    [
        ({}, "http://127.0.0.1:2/"),
        ({"rest.advertised.listener": "https"}, "https://127.0.0.1:1/"),
        ({"rest.advertised.host.name": "::1", "rest.advertised.port": "9"}, "http://[::1]:9/"),
    ],
)
def test_advertised_url(props: dict[str, str], url: str) -> None:
    listeners = {"listeners": "https://127.0.0.1:0,http://127.0.0.1:0"}
    file = worker_with({**listeners, "ssl.keystore.location": "/k", **props})
    assert serving.own_url_of(file.rest, [1, 2]) == url


def test_key_store_is_read_at_the_start(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    props = {
        "listeners": "http://127.0.0.1:0,https://127.0.0.1:0",
        "listeners.https.ssl.keystore.location": str(certificates.pem("broker")),
        "listeners.https.ssl.keystore.type": "PEM",
    }
    ((server, _),) = serving._servers(worker_with(props), None)
    assert [tls is not None for tls in server._tls] == [False, True]
    certificates.write("broker.pem", "no key")
    with pytest.raises(ConfigError, match=r"REST API \(listeners\.https\.ssl\.\*\): ssl\.keystore"):
        serving._servers(worker_with(props), None)


def test_users_are_those_of_javas_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    users, jaas = tmp_path / "users", tmp_path / "jaas.conf"
    users.write_text("alice: secret\n")
    jaas.write_text(f'KafkaConnect {{ {LOGIN_MODULE} required file="{users}"; }};')
    monkeypatch.setenv("KAFKA_OPTS", f"-Djava.security.auth.login.config={jaas}")
    rest = worker_with({"rest.extension.classes": BASIC_AUTH}).rest
    found = serving.users_of(rest)
    assert found is not None
    assert list(found._passwords) == ["alice"]
    assert serving.users_of(worker_with({}).rest) is None


def test_open_listener_is_reported_before_anything_else(caplog: pytest.LogCaptureFixture) -> None:
    nobody = {
        "bootstrap.servers": "127.0.0.1:1",
        "default.api.timeout.ms": "1",
        "request.timeout.ms": "1",
    }
    file = worker_with({"listeners": "http://127.0.0.1:0,http://0.0.0.0:0", **nobody})
    with caplog.at_level(logging.WARNING), pytest.raises(TransportError):
        serving.serve(file, threading.Event())
    found = [text for text in caplog.messages if "has no authentication" in text]
    assert len(found) == 1
    assert found[0].startswith("http://0.0.0.0:0 ")


def run_worker(file: Path) -> int | str | None:
    with pytest.raises(SystemExit) as ended:
        main.main(["worker", str(file)])
    return ended.value.code


def write_worker(folder: Path, listener: str) -> Path:
    file = folder / "worker.properties"
    lines = {**SMALLEST, "listeners": listener}
    file.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    return file


def test_a_used_port_exits_with_a_code_that_supervisors_retry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(worker, "stop_on_signals", threading.Event)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert run_worker(write_worker(tmp_path, f"http://{address}")) == main.EXIT_ERROR
    assert f"cannot listen at {address}: " in capsys.readouterr().err


def test_options_of_a_jvm_that_are_dropped_beside_a_file_are_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_OPTS", "-javaagent:/opt/exporter.jar=9404:/etc/exporter.yml")
    config = worker._load(write_worker(tmp_path, "http://127.0.0.1:0"))
    (warning,) = [text for text in config.warnings if "KAFKA_OPTS" in text]
    assert warning.endswith(
        "no Java agent is loaded: there is no JMX here; /metrics has the metrics (docs/metrics.md)"
    )
