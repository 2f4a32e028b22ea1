"""Keys of AWS: where they come from, and for how long one waits for them."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from botocore.credentials import SSOProvider

from sparkmirror.config.masking import mask
from sparkmirror.errors import AuthenticationError
from sparkmirror.wire.sasl import aws as aws_module
from sparkmirror.wire.sasl.aws import AwsCredentials
from sparkmirror.wire.sasl.aws_files import aws_files
from sparkmirror.wire.secret_files import forget_provided, provide

ROLE = "arn:aws:iam::1:role/r"


class Aws:
    """STS, the machine's and the container's server, all in one."""

    def __init__(self) -> None:
        self.forms: list[dict[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.refuse = False
        owner = self

        class Handler(BaseHTTPRequestHandler):
            """Responds in the name of AWS."""

            def do_GET(self) -> None:
                owner.respond(self, "GET")

            def do_PUT(self) -> None:
                owner.respond(self, "PUT")

            def do_POST(self) -> None:
                owner.respond(self, "POST")

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Tests print nothing."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def respond(self, request: BaseHTTPRequestHandler, method: str) -> None:
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0)).decode()
        status, text = self.result_of(method, request.path, dict(urllib.parse.parse_qsl(body)))
        request.send_response(status)
        request.send_header("Content-Length", str(len(text)))
        request.end_headers()
        request.wfile.write(text.encode())

    def result_of(self, method: str, path: str, form: dict[str, str]) -> tuple[int, str]:
        iso = {"Expiration": "2099-01-01T00:00:00Z"}
        row: dict[str, Any] = {
            "AccessKeyId": "AK-" + path.rpartition("/")[2],
            "SecretAccessKey": "s",
            "Token": "t",
        }
        if method == "POST":
            self.forms.append(form)
            if self.refuse:
                return (
                    403,
                    "<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>",
                )
            return 200, _role_keys(form["Action"], form["RoleArn"])
        if path.startswith("/federation/credentials"):
            keys = {"accessKeyId": "AK-sso", "secretAccessKey": "s", "sessionToken": "t"}
            return 200, json.dumps({"roleCredentials": {**keys, "expiration": 4_000_000_000_000}})
        if path == "/latest/api/token":
            return 200, "machine-token"
        if path.endswith("/security-credentials/"):
            return 200, "role-name"
        return 200, json.dumps({**row, **iso})


def _role_keys(action: str, role: str) -> str:
    row = f"<AccessKeyId>{role}</AccessKeyId><SecretAccessKey>s</SecretAccessKey>"
    row += "<SessionToken>t</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration>"
    result = f"<{action}Result><Credentials>{row}</Credentials></{action}Result>"
    return f"<{action}Response>{result}</{action}Response>"


@pytest.fixture(scope="module")
def server() -> Iterator[Aws]:
    aws = Aws()
    thread = threading.Thread(target=aws.http.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield aws
    aws.http.shutdown()
    aws.http.server_close()
    thread.join(5)


@pytest.fixture
def aws(server: Aws) -> Aws:
    server.forms.clear()
    server.headers.clear()
    server.refuse = False
    return server


NO_MACHINE = {"AWS_EC2_METADATA_DISABLED": "true"}


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests change a copy."""
    monkeypatch.setattr(os, "environ", os.environ.copy())


def chain(
    home: Path, environment: dict[str, str], options: dict[str, str] | None = None
) -> AwsCredentials:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update({**NO_MACHINE, **environment, "HOME": str(home)})
    return AwsCredentials(options or {})


def write_profiles(home: Path, credentials: str, config: str = "") -> None:
    (home / ".aws").mkdir()
    (home / ".aws" / "credentials").write_text(credentials)
    (home / ".aws" / "config").write_text(config)


def test_environment_first(tmp_path: Path) -> None:
    write_profiles(tmp_path, "[default]\naws_access_key_id=P\naws_secret_access_key=s\n")
    environment = {"AWS_ACCESS_KEY_ID": "E", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"}
    keys = chain(tmp_path, environment).fetch()
    assert (keys.access_key, keys.token) == ("E", "t")
    assert keys.expires_at < time.time() + 1000  # looked up again soon


def test_profiles(tmp_path: Path) -> None:
    write_profiles(
        tmp_path,
        "[default]\naws_access_key_id=D\naws_secret_access_key=s\n"
        "[other]\naws_access_key_id = O\naws_secret_access_key = s\n",
        "[default]\nregion=eu-west-1\n[profile other]\nregion=us-west-2\n",
    )
    assert chain(tmp_path, {}).fetch().access_key == "D"
    assert chain(tmp_path, {}).region() == "eu-west-1"
    assert chain(tmp_path, {"AWS_PROFILE": "other"}).fetch().access_key == "O"
    named = chain(tmp_path, {"AWS_ACCESS_KEY_ID": "E", "AWS_SECRET_ACCESS_KEY": "s"},
                  {"awsProfileName": "other"})  # fmt: skip
    assert named.fetch().access_key == "O"
    assert named.region() == "us-west-2"
    assert len(aws_files(os.environ)) == 2
    with pytest.raises(AuthenticationError, match=r"profile \(gone\)"):
        chain(tmp_path, {}, {"awsProfileName": "gone"}).fetch()


def test_nothing_anywhere(tmp_path: Path) -> None:
    with pytest.raises(AuthenticationError, match="no AWS credentials: neither AWS_ACCESS_KEY_ID"):
        chain(tmp_path, {}).fetch()


def test_roles_of_options(tmp_path: Path, aws: Aws) -> None:
    options = {
        "awsRoleArn": ROLE,
        "awsRoleSessionName": "me",
        "awsRoleExternalId": "x1",
        "awsStsRegion": "eu-west-1",
        "awsRoleAccessKeyId": "AKB",
        "awsRoleSecretAccessKey": "hush",
    }
    found = chain(tmp_path, {"AWS_ENDPOINT_URL_STS": aws.url}, options)
    keys = found.fetch()
    assert (keys.access_key, keys.token) == (options["awsRoleArn"], "t")
    assert found.fetch().access_key == options["awsRoleArn"]
    (form,) = aws.forms
    assert form["Action"] == "AssumeRole"
    assert (form["RoleSessionName"], form["ExternalId"]) == ("me", "x1")
    authorization = aws.headers[0]["authorization"]
    assert authorization.startswith("AWS4-HMAC-SHA256 Credential=AKB/")
    assert "/eu-west-1/sts/aws4_request" in authorization
    aws.refuse = True
    with pytest.raises(AuthenticationError, match=r"403 \(AccessDenied\)") as caught:
        AwsCredentials(options).fetch()
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    "region", ["evil.test/", "x@evil.test/?", "eu-west-1.evil.test#", "EU-WEST-1", "a" * 70, "eu"]
)
def test_region_that_would_name_another_host(tmp_path: Path, region: str) -> None:
    role = {"awsRoleArn": ROLE, "awsRoleAccessKeyId": "A", "awsRoleSecretAccessKey": "s"}
    with pytest.raises(AuthenticationError, match="an AWS region that is none"):
        chain(tmp_path, {}, {**role, "awsStsRegion": region}).fetch()
    with pytest.raises(AuthenticationError, match="an AWS region that is none"):
        chain(tmp_path, {"AWS_REGION": region}).region()


@pytest.mark.parametrize("region", ["eu-west-1", "us-gov-east-1", "us-iso-east-1", "cn-north-1"])
def test_regions(tmp_path: Path, region: str) -> None:
    assert chain(tmp_path, {"AWS_REGION": region}).region() == region


def test_container_server_is_asked_for_a_path_only(tmp_path: Path) -> None:
    variables = {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "@evil.test/"}
    with pytest.raises(AuthenticationError, match="not a path"):
        chain(tmp_path, variables).fetch()


def test_roles_of_profiles(tmp_path: Path, aws: Aws) -> None:
    write_profiles(
        tmp_path,
        "[base]\naws_access_key_id=B\naws_secret_access_key=s\n",
        "[profile r]\nrole_arn=arn:aws:iam::1:role/r\nsource_profile=base\nexternal_id=e1\n",
    )
    environment = {"AWS_ENDPOINT_URL_STS": aws.url, "AWS_PROFILE": "r"}
    assert chain(tmp_path, environment).fetch().access_key == ROLE
    assert aws.forms[0]["ExternalId"] == "e1"
    assert "Credential=B/" in aws.headers[0]["authorization"]


def test_web_identity(tmp_path: Path, aws: Aws) -> None:
    (tmp_path / "token").write_text("web-token\n")
    environment = {
        "AWS_ENDPOINT_URL_STS": aws.url,
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"),
        "AWS_ROLE_ARN": ROLE,
    }
    found = chain(tmp_path, environment)
    assert found.fetch().access_key == ROLE
    assert aws.forms[0]["WebIdentityToken"] == "web-token"
    assert "authorization" not in aws.headers[0]
    assert aws_files(os.environ) == (str(tmp_path / "token"),)


def test_container(tmp_path: Path, aws: Aws) -> None:
    environment = {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{aws.url}/creds/task",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN": "let-me-in",
    }
    keys = chain(tmp_path, environment).fetch()
    assert (keys.access_key, keys.token) == ("AK-task", "t")
    assert aws.headers[0]["authorization"] == "let-me-in"


def test_machine(tmp_path: Path, aws: Aws) -> None:
    environment = {
        "AWS_EC2_METADATA_DISABLED": "false",
        "AWS_EC2_METADATA_SERVICE_ENDPOINT": aws.url,
    }
    assert chain(tmp_path, environment).fetch().access_key == "AK-role-name"
    assert aws.headers[-1]["x-aws-ec2-metadata-token"] == "machine-token"


def test_single_sign_on(tmp_path: Path, aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    start = "https://example.awsapps.com/start"
    write_profiles(
        tmp_path,
        "",
        f"[default]\nsso_start_url={start}\nsso_region=eu-west-1\n"
        "sso_account_id=1\nsso_role_name=r\n",
    )
    cached = {"accessToken": "sign-on-token", "expiresAt": "2099-01-01T00:00:00Z"}
    cache = tmp_path / ".aws" / "sso" / "cache"
    cache.mkdir(parents=True)
    monkeypatch.setattr(SSOProvider, "_SSO_TOKEN_CACHE_DIR", str(cache))
    name = hashlib.sha1(start.encode()).hexdigest()
    (cache / f"{name}.json").write_text(json.dumps(cached))
    keys = chain(tmp_path, {"AWS_ENDPOINT_URL_SSO": aws.url}).fetch()
    assert (keys.access_key, keys.token) == ("AK-sso", "t")
    assert aws.headers[0]["x-amz-sso_bearer_token"] == "sign-on-token"


def test_a_program_that_prints_keys(tmp_path: Path) -> None:
    script = tmp_path / "keys.sh"
    row = {"Version": 1, "AccessKeyId": "AK-program", "SecretAccessKey": "printed/secret"}
    script.write_text(f"echo '{json.dumps(row)}'\n")
    write_profiles(tmp_path, "", f"[default]\ncredential_process = /bin/sh {script}\n")
    assert chain(tmp_path, {}).fetch().access_key == "AK-program"
    assert mask("with printed/secret") == "with [hidden]"


def test_the_output_of_a_failing_program_is_not_repeated(tmp_path: Path) -> None:
    script = tmp_path / "keys.sh"
    script.write_text("echo se/cret-of-a-program >&2; exit 1\n")
    write_profiles(tmp_path, "", f"[default]\ncredential_process = /bin/sh {script}\n")
    with pytest.raises(AuthenticationError, match="custom-process cannot be read") as caught:
        chain(tmp_path, {}).fetch()
    assert "se/cret" not in str(caught.value)


def test_a_program_that_hangs_is_waited_for_once_and_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aws_module, "FETCH_SECONDS", 0.5)
    may_end = tmp_path / "may-end"
    script = tmp_path / "keys.sh"
    script.write_text(f"echo >> {tmp_path}/runs; until test -e {may_end}; do sleep 0.05; done\n")
    write_profiles(tmp_path, "", f"[default]\ncredential_process = /bin/sh {script}\n")
    found = chain(tmp_path, {})
    for _ in range(2):
        with pytest.raises(AuthenticationError, match=r"none after 0\.5 s"):
            found.fetch()
    assert (tmp_path / "runs").read_text() == "\n"
    may_end.touch()
    running = found._running
    assert running is not None
    assert running.exception(10) is not None


def test_executors_use_what_the_worker_has_sent(tmp_path: Path, aws: Aws) -> None:
    """None of these files is on this machine."""
    environment = {
        "AWS_ENDPOINT_URL_STS": aws.url,
        "AWS_SHARED_CREDENTIALS_FILE": "/of/the/worker/credentials",
        "AWS_CONFIG_FILE": "/of/the/worker/config",
        "AWS_WEB_IDENTITY_TOKEN_FILE": "/of/the/worker/token",
        "AWS_ROLE_ARN": ROLE,
    }
    provide("/of/the/worker/credentials", b"[p]\naws_access_key_id=W\naws_secret_access_key=s\n")
    provide("/of/the/worker/token", b"sent-token\n")
    try:
        assert chain(tmp_path, environment, {"awsProfileName": "p"}).fetch().access_key == "W"
        assert chain(tmp_path, environment).fetch().access_key == ROLE
    finally:
        forget_provided()
    assert aws.forms[0]["WebIdentityToken"] == "sent-token"


def test_keys_that_botocore_renews_are_asked_for_once(tmp_path: Path, aws: Aws) -> None:
    options = {"awsRoleArn": ROLE, "awsRoleAccessKeyId": "A", "awsRoleSecretAccessKey": "s"}
    found = chain(tmp_path, {"AWS_ENDPOINT_URL_STS": aws.url}, options)
    for _ in range(3):
        assert found.fetch().access_key == ROLE
    assert len(aws.forms) == 1


def test_replaced_keys_of_a_file_are_found(tmp_path: Path) -> None:
    write_profiles(tmp_path, "[default]\naws_access_key_id=OLD\naws_secret_access_key=s\n")
    found = chain(tmp_path, {})
    assert found.fetch().access_key == "OLD"
    text = "[default]\naws_access_key_id=NEW\naws_secret_access_key=s\n"
    (tmp_path / ".aws" / "credentials").write_text(text)
    assert found.fetch().access_key == "NEW"
