"""The deploy commands at a worker that wants to know who is there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.config.worker.rest_security import RestTls
from sparkmirror.rest.connect_api import make_app
from sparkmirror.rest.request import RestOptions
from sparkmirror.rest.rest_server import RestServer
from sparkmirror.rest.security.tls import listener_context
from sparkmirror.rest.security.users import Users
from tests.certificates import Certificates
from tests.cli.deploy_shell import CLASSES, Shell, Worker

LOGIN = "admin:all-of-it"


@pytest.fixture
def users(tmp_path: Path) -> Users:
    path = tmp_path / "users"
    path.write_text("admin: all-of-it\nreader: a-look\n")
    return Users(path, ["reader"])


def _with_files(shell: Shell) -> Shell:
    for kind in CLASSES:
        shell.write(kind)
    return shell


@pytest.fixture
def shell(users: Users, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Shell]:
    worker = Worker()
    app = make_app(worker, RestOptions(users=users))
    with RestServer([("127.0.0.1", 0)]).start(app) as server:
        yield _with_files(Shell(worker, f"http://127.0.0.1:{server.ports[0]}", tmp_path, capsys))


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


@pytest.fixture
def https_shell(
    users: Users,
    certificates: Certificates,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Shell]:
    """Of a worker that wants a login and a certificate."""
    stores = {
        "ssl.keystore.location": str(certificates.pem("broker")),
        "ssl.keystore.type": "PEM",
        "ssl.truststore.location": str(certificates.ca_pem),
        "ssl.truststore.type": "PEM",
    }
    worker = Worker()
    context = listener_context(RestTls(stores, "required"))
    app = make_app(worker, RestOptions(users=users))
    with RestServer([("127.0.0.1", 0)], [context]).start(app) as server:
        yield _with_files(Shell(worker, f"https://127.0.0.1:{server.ports[0]}", tmp_path, capsys))


def test_login_by_option_environment_and_url(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shell("deploy", "--user", LOGIN) == 0, shell.err
    monkeypatch.setenv("SPARKMIRROR_USER", LOGIN)
    assert shell("status") == 0, shell.err
    monkeypatch.delenv("SPARKMIRROR_USER")
    shell.url = shell.url.replace("//", f"//{LOGIN}@")
    assert shell("status") == 0, shell.err


def test_password_is_prompted_for(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def prompt(text: str, *, hide_input: bool, err: bool) -> str:
        asked.append(text)
        return "all-of-it" if hide_input and err else ""

    monkeypatch.setattr("typer.prompt", prompt)
    assert shell("status", "--user", "admin") == 1, shell.err
    assert "NOT FOUND" in shell.out
    assert asked == ["Password of admin"]


@pytest.mark.parametrize("words", [(), ("--user", "admin:wrong-one")], ids=["none", "wrong"])
def test_rejected_login_is_one_line(shell: Shell, words: tuple[str, ...]) -> None:
    assert shell("status", *words) == 1
    assert shell.err == (
        f"sparkmirror: the worker at {shell.url} rejects the login; "
        "use a user and a password that it knows\n"
    )


def test_reader_sees_the_status_and_deploys_nothing(shell: Shell) -> None:
    assert shell("deploy", "--user", LOGIN) == 0
    shell.worker.asked.clear()
    assert shell("status", "--user", "reader:a-look") == 0
    assert shell("undeploy", "--user", "reader:a-look") == 1
    assert "User reader may only read." in shell.err
    assert shell.worker.writes == []


def test_https_with_certificates(https_shell: Shell, certificates: Certificates) -> None:
    words = ("--user", LOGIN, "--ca", str(certificates.ca_pem))
    own = ("--cert", str(certificates.pem("client")))
    assert https_shell("deploy", *words, *own) == 0, https_shell.err
    assert https_shell("status", *words, *own) == 0, https_shell.err


def test_https_with_a_ca_that_is_not_known(https_shell: Shell) -> None:
    assert https_shell("status", "--user", LOGIN) == 1
    assert https_shell.err.count("\n") == 1
    assert "CERTIFICATE_VERIFY_FAILED" in https_shell.err
    assert https_shell.err.endswith("name the file with the certificate of its CA\n")


def test_https_without_a_certificate_that_is_wanted(
    https_shell: Shell, certificates: Certificates
) -> None:
    assert https_shell("status", "--user", LOGIN, "--ca", str(certificates.ca_pem)) == 1
    assert https_shell.err.count("\n") == 1
    assert https_shell.err.endswith("it may require a client certificate\n")


def test_files_that_are_no_certificates(https_shell: Shell, certificates: Certificates) -> None:
    locked = certificates.write(
        "locked.pem", certificates.client.key_pem("secret") + certificates.client.pem
    )
    for words in (("--ca", "/nowhere"), ("--ca", __file__), ("--cert", str(locked))):
        assert https_shell("status", *words) == 2
        assert https_shell.err.count("\n") == 1
        assert f"TLS={words[1]}: cannot be used: " in https_shell.err


def test_wrong_url_does_not_show_its_password(shell: Shell) -> None:
    shell.url = "ftp://admin:all-of-it@host"
    assert shell("status") == 2
    assert shell.err.startswith("sparkmirror: url=ftp://[hidden]@host: ")
