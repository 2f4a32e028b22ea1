"""AWS_MSK_IAM: published signatures, where keys come from, and what is sent."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
import urllib.parse
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sparkmirror.config.masking import mask
from sparkmirror.errors import AuthenticationError
from sparkmirror.wire.sasl.aws_credentials import Chain
from sparkmirror.wire.sasl.aws_signing import (
    Keys,
    Scope,
    Signable,
    authorization,
    presigned_query,
    sign,
    signing_key,
)
from sparkmirror.wire.sasl.msk_iam import (
    MskIam,
    MskIamLogin,
    MskTokenLogin,
    iam_token,
    region_of,
)
from sparkmirror.wire.sasl.renewing import Renewing, Schedule

# The keys of AWS's own examples.
EXAMPLE = Keys("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
S3_EXAMPLE = Keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
BROKER = "b-1.demo.abc123.c2.kafka.eu-central-1.amazonaws.com"


def at(text: str) -> float:
    return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("day", "key"),
    [
        ("20120215T000000Z", "f4780e2d9f65fa895f9c67b32ce1baf0b0d8a43505a000a1a9e090d414db404d"),
        ("20150830T000000Z", "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9"),
    ],
)
def test_published_signing_keys(day: str, key: str) -> None:
    scope = Scope(at(day), "us-east-1", "iam")
    assert signing_key(EXAMPLE.secret_key, scope).hex() == key


TIME = "20150830T123600Z"
HOST = {"host": "example.amazonaws.com", "x-amz-date": TIME}
# Of AWS's Signature Version 4 test suite.
SUITE = {
    "get-vanilla": (
        Signable("GET", HOST),
        "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
    ),
    "post-vanilla": (
        Signable("POST", HOST),
        "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
    ),
    "get-vanilla-query-order-key-case": (
        Signable("GET", HOST, {"Param2": "value2", "Param1": "value1"}),
        "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
    ),
    "post-x-www-form-urlencoded": (
        Signable(
            "POST",
            {**HOST, "content-type": "application/x-www-form-urlencoded"},
            body_hash=hashlib.sha256(b"Param1=value1").hexdigest(),
        ),
        "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
    ),
}


@pytest.mark.parametrize(("request_", "signature"), SUITE.values(), ids=SUITE)
def test_published_signatures(request_: Signable, signature: str) -> None:
    scope = Scope(at(TIME), "us-east-1", "service")
    assert sign(request_, EXAMPLE, scope) == signature
    header = authorization(request_, EXAMPLE, scope)
    assert header.startswith(
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
    )
    assert header.endswith(f"Signature={signature}")


def test_published_signature_in_a_query() -> None:
    """The example of S3's documentation of presigned URLs."""
    request = Signable(
        "GET",
        {"host": "examplebucket.s3.amazonaws.com"},
        path="/test.txt",
        body_hash="UNSIGNED-PAYLOAD",
    )
    scope = Scope(at("20130524T000000Z"), "us-east-1", "s3")
    query = presigned_query(request, S3_EXAMPLE, scope, 86400)
    assert query["X-Amz-Signature"] == (
        "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
    )


def test_keys_are_never_shown() -> None:
    keys = Keys("AKID", "se/cret+key", token="session+token/1")
    assert "cret" not in repr(keys)
    assert mask("AKID se/cret+key session+token/1") == "AKID [hidden] [hidden]"


def test_the_message_for_a_broker() -> None:
    keys = Keys("AKID", "hush", token="session/token+")
    scope = Scope(at("20261115T120000Z"), "eu-central-1", "kafka-cluster")
    fields = json.loads(MskIam(BROKER, keys, scope).start())
    signature = fields.pop("x-amz-signature")
    assert fields == {
        "version": "2020_10_22",
        "host": BROKER,
        "user-agent": "sparkmirror",
        "action": "kafka-cluster:Connect",
        "x-amz-algorithm": "AWS4-HMAC-SHA256",
        "x-amz-credential": "AKID/20261115/eu-central-1/kafka-cluster/aws4_request",
        "x-amz-date": "20261115T120000Z",
        "x-amz-expires": "900",
        "x-amz-signedheaders": "host",
        "x-amz-security-token": "session/token+",
    }
    assert len(signature) == 64
    mechanism = MskIam(BROKER, keys, scope)
    assert mechanism.answer(b'{"version":"2020_10_22","request-id":"1"}') is None
    with pytest.raises(AuthenticationError):
        mechanism.answer(b"")


def test_the_same_as_a_token() -> None:
    token = iam_token(EXAMPLE, Scope(at(TIME), "us-east-1", "kafka-cluster"))
    url = base64.urlsafe_b64decode(token.text + "=" * (-len(token.text) % 4)).decode()
    parts = urllib.parse.urlsplit(url)
    query = dict(urllib.parse.parse_qsl(parts.query))
    assert parts.netloc == "kafka.us-east-1.amazonaws.com"
    assert query["Action"] == "kafka-cluster:Connect"
    assert query["User-Agent"] == "sparkmirror"
    assert token.expires_at == at(TIME) + 900


@pytest.mark.parametrize(
    ("host", "region"),
    [
        (BROKER, "eu-central-1"),
        ("boot-x1.c2.kafka-serverless.us-east-1.amazonaws.com", "us-east-1"),
        ("b-1.x.c3.kafka.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("localhost", ""),
        ("kafka.example.com", ""),
    ],
)
def test_region_of_a_broker(host: str, region: str) -> None:
    assert region_of(host) == region


@pytest.mark.parametrize("kind", [MskIamLogin, MskTokenLogin])
def test_login_needs_a_region(kind: type[MskIamLogin]) -> None:
    renewing = Renewing("keys", lambda: Keys("A", "s", "", 0, 2e9), time.time, Schedule())
    assert kind(renewing, lambda: "").begin(BROKER).result(5).start()
    with pytest.raises(AuthenticationError, match="AWS_REGION"):
        kind(renewing, lambda: "").begin("localhost").result(5)
    login = kind(renewing, lambda: "eu-west-1")
    assert login.begin("localhost").result(5).start()
    assert login.user == "A"


# -- where keys come from ----------------------------------------------------------------------


class Aws:
    """STS, the machine's and the container's server, all in one."""

    def __init__(self) -> None:
        self.forms: list[dict[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.refuse = False
        owner = self

        class Handler(BaseHTTPRequestHandler):
            """Answers in the name of AWS."""

            def do_GET(self) -> None:
                owner.answer(self, "GET")

            def do_PUT(self) -> None:
                owner.answer(self, "PUT")

            def do_POST(self) -> None:
                owner.answer(self, "POST")

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Tests print nothing."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def answer(self, request: BaseHTTPRequestHandler, method: str) -> None:
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0)).decode()
        status, text = self.say(method, request.path, dict(urllib.parse.parse_qsl(body)))
        request.send_response(status)
        request.send_header("Content-Length", str(len(text)))
        request.end_headers()
        request.wfile.write(text.encode())

    def say(self, method: str, path: str, form: dict[str, str]) -> tuple[int, str]:
        iso = {"Expiration": "2099-01-01T00:00:00Z"}
        row: dict[str, Any] = {
            "AccessKeyId": "AK-" + path.rpartition("/")[2],
            "SecretAccessKey": "s",
            "Token": "t",
        }
        if method == "POST":
            self.forms.append(form)
            if self.refuse:
                return 403, json.dumps({"Error": {"Code": "AccessDenied"}})
            row = {**row, "AccessKeyId": form["RoleArn"], "SessionToken": "t", "Expiration": 4e9}
            action = form["Action"]
            return 200, json.dumps({f"{action}Response": {f"{action}Result": {"Credentials": row}}})
        if path == "/latest/api/token":
            return 200, "machine-token"
        if path.endswith("/security-credentials/"):
            return 200, "role-name\n"
        return 200, json.dumps({**row, **iso})


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


def chain(home: Path, environment: dict[str, str], options: dict[str, str] | None = None) -> Chain:
    return Chain(options or {}, {**NO_MACHINE, **environment}, str(home))


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
    assert len(named.files()) == 2
    with pytest.raises(AuthenticationError, match="profile 'gone'"):
        chain(tmp_path, {}, {"awsProfileName": "gone"}).fetch()


def test_nothing_anywhere(tmp_path: Path) -> None:
    with pytest.raises(AuthenticationError, match="no AWS credentials: neither AWS_ACCESS_KEY_ID"):
        chain(tmp_path, {}).fetch()


def test_roles_of_options(tmp_path: Path, aws: Aws) -> None:
    options = {
        "awsRoleArn": "arn:aws:iam::1:role/r",
        "awsRoleSessionName": "me",
        "awsRoleExternalId": "x",
        "awsStsRegion": "eu-west-1",
        "awsRoleAccessKeyId": "AKB",
        "awsRoleSecretAccessKey": "hush",
    }
    found = chain(tmp_path, {"AWS_ENDPOINT_URL_STS": aws.url}, options)
    keys = found.fetch()
    assert (keys.access_key, keys.token) == (options["awsRoleArn"], "t")
    (form,) = aws.forms
    assert form["Action"] == "AssumeRole"
    assert (form["RoleSessionName"], form["ExternalId"]) == ("me", "x")
    told = aws.headers[0]["authorization"]
    assert told.startswith("AWS4-HMAC-SHA256 Credential=AKB/")
    assert "/eu-west-1/sts/aws4_request" in told
    aws.refuse = True
    with pytest.raises(AuthenticationError, match=r"403 \(AccessDenied\)") as caught:
        found.fetch()
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    "region", ["evil.test/", "x@evil.test/?", "eu-west-1.evil.test#", "EU-WEST-1", "a" * 70, "eu"]
)
def test_region_that_would_name_another_host(tmp_path: Path, region: str) -> None:
    role = {"awsRoleArn": "arn:r", "awsRoleAccessKeyId": "A", "awsRoleSecretAccessKey": "s"}
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
        "[profile r]\nrole_arn=arn:r\nsource_profile=base\nexternal_id=e\n",
    )
    environment = {"AWS_ENDPOINT_URL_STS": aws.url, "AWS_PROFILE": "r"}
    assert chain(tmp_path, environment).fetch().access_key == "arn:r"
    assert aws.forms[0]["ExternalId"] == "e"
    assert "Credential=B/" in aws.headers[0]["authorization"]


def test_web_identity(tmp_path: Path, aws: Aws) -> None:
    (tmp_path / "token").write_text("web-token\n")
    environment = {
        "AWS_ENDPOINT_URL_STS": aws.url,
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"),
        "AWS_ROLE_ARN": "arn:web",
    }
    found = chain(tmp_path, environment)
    assert found.fetch().access_key == "arn:web"
    assert aws.forms[0]["WebIdentityToken"] == "web-token"
    assert "authorization" not in aws.headers[0]
    assert found.files() == (str(tmp_path / "token"),)


def test_container(tmp_path: Path, aws: Aws) -> None:
    environment = {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{aws.url}/creds/task",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN": "let-me-in",
    }
    keys = chain(tmp_path, environment).fetch()
    assert (keys.access_key, keys.token) == ("AK-task", "t")
    assert keys.expires_at == datetime(2099, 1, 1, tzinfo=UTC).timestamp()
    assert aws.headers[0]["authorization"] == "let-me-in"


def test_machine(tmp_path: Path, aws: Aws) -> None:
    environment = {
        "AWS_EC2_METADATA_DISABLED": "false",
        "AWS_EC2_METADATA_SERVICE_ENDPOINT": aws.url,
    }
    assert chain(tmp_path, environment).fetch().access_key == "AK-role-name"
    assert aws.headers[-1]["x-aws-ec2-metadata-token"] == "machine-token"
