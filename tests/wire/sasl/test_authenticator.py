"""Logins over connections: the first, those that renew a session, and those that are refused."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkmirror.config.config_def import Secret
from sparkmirror.errors import AuthenticationError
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.client.reachability import check_reachable
from sparkmirror.wire.sasl import authenticator
from tests.wire.fake_broker import FETCH, PRODUCE, FakeCluster
from tests.wire.fake_login import Door, Refused
from tests.wire.fake_msk import Msk
from tests.wire.rigs import TP, FetcherRig, ProducerRig, Rig, client_config, flat, numbered

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
MSK = "software.amazon.msk.auth.iam.IAMLoginModule required"


def login(mechanism: str, line: str, **others: Any) -> dict[str, Any]:
    values = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism}
    return {**values, "sasl.jaas.config": Secret(line), **others}


SESSION_MS = 6000
ALICE = login("PLAIN", f'{PLAIN} username="alice" password="hush";')
BOB = login("PLAIN", f'{PLAIN} username="bob" password="hush";')


def knows_alice(message: bytes) -> bytes:
    if message != b"\0alice\0hush":
        raise Refused("who are you?")
    return b""


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Renew a second after the last login, long before the end: a busy machine may be late."""
    monkeypatch.setattr(authenticator, "EARLIEST", 0.17)
    monkeypatch.setattr(authenticator, "LATEST", 0.19)


@pytest.fixture
def door() -> Door:
    return Door("PLAIN", knows_alice)


@pytest.fixture
def brokers(door: Door) -> Iterator[FakeCluster]:
    with FakeCluster(nodes=2, door=door) as cluster:
        cluster.create_topic("t")
        yield cluster


def test_nothing_is_sent_before_the_login(brokers: FakeCluster, door: Door) -> None:
    with FetcherRig(brokers, security=ALICE) as rig:
        brokers.write(TP, [b"a", b"b"])
        rig.fetcher.add(TP, 0)
        rig.wait_for([b"a", b"b"])
    assert door.logins >= 1
    assert door.violations == []


@pytest.mark.usefixtures("early")
def test_sessions_are_renewed_under_load_and_nothing_is_lost(
    brokers: FakeCluster, door: Door
) -> None:
    """Requests are always under way."""
    door.lifetime_ms = SESSION_MS
    with ProducerRig(brokers, security=ALICE) as rig:
        deadline = time.monotonic() + 3.5
        batches = []
        for at in itertools.count():
            (values,) = numbered(1, start=at)
            batches.append(values)
            rig.append(values)
            rig.run_for(0.002)
            if time.monotonic() > deadline:
                break
        rig.finish()
        stored = brokers.log("t").values()
        assert stored == flat(batches)
        assert rig.blocked == []
    assert door.violations == []
    assert door.logins >= 2 * 2  # two connections at least, each more than once
    assert len(brokers.sent(PRODUCE)) > 100


@pytest.mark.usefixtures("early")
def test_a_fetch_that_waits_does_not_keep_a_session_from_being_renewed(
    brokers: FakeCluster, door: Door
) -> None:
    door.lifetime_ms = SESSION_MS
    with FetcherRig(brokers, security=ALICE) as rig:
        rig.fetcher.add(TP, 0)
        rig.run_until(lambda: door.logins >= 5, lambda: (door.logins, rig.errors))
        brokers.write(TP, [b"late"])
        rig.wait_for([b"late"])
    assert door.violations == []
    assert brokers.sent(FETCH)


REFUSED = {
    "wrong password": (
        login("PLAIN", f'{PLAIN} username="alice" password="SECRET";'),
        r"PLAIN login as 'alice': who are you\?; check user name and password in sasl.jaas.config",
    ),
    "another mechanism": (
        login("OAUTHBEARER", f'{OAUTH} unsecuredLoginStringClaim_sub="alice";'),
        "OAUTHBEARER login: the broker offers PLAIN on this listener; set sasl.mechanism",
    ),
}


@pytest.mark.parametrize(("security", "reason"), REFUSED.values(), ids=REFUSED)
def test_refused(brokers: FakeCluster, security: dict[str, Any], reason: str) -> None:
    config = client_config(brokers, security=security)
    began = time.monotonic()
    with pytest.raises(AuthenticationError, match=reason) as caught:
        check_reachable(config)
    assert time.monotonic() - began < 15.0
    text = str(caught.value)
    assert text.startswith("cluster 'fake', broker 127.0.0.1:")
    assert "\n" not in text
    assert "SECRET" not in text


def test_a_rejected_login_is_retried_less_often_and_logged_once(
    brokers: FakeCluster, door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    with Rig(brokers, security=BOB) as rig:
        rig.metadata.track(["t"])
        rig.run_for(1.5)
        assert isinstance(rig.cluster.last_error, AuthenticationError)
        door.judge = lambda _: b""  # an administrator has added bob
        rig.run_until(lambda: rig.metadata.leaders != {}, lambda: rig.cluster.last_error)
    lines = [record for record in caplog.records if "who are you?" in record.message]
    assert 1 <= len(lines) <= 2  # one for each broker


def test_credentials_that_cannot_be_had(brokers: FakeCluster, tmp_path: Path) -> None:
    url = {"sasl.oauthbearer.token.endpoint.url": f"file://{tmp_path}/token"}
    config = client_config(brokers, security=login("OAUTHBEARER", f"{OAUTH};", **url))
    with pytest.raises(AuthenticationError, match=r"the token file .* cannot be read: No such"):
        check_reachable(config)


# -- MSK -----------------------------------------------------------------------------------------

HOST = "127.0.0.1"


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    credentials = tmp_path / "credentials"
    credentials.write_text(
        "[mirror]\naws_access_key_id=AKMIRROR\naws_secret_access_key=hush/+\n"
        "[wrong]\naws_access_key_id=AKMIRROR\naws_secret_access_key=other\n"
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(credentials))


def msk_login(profile: str) -> dict[str, Any]:
    handler = {
        "sasl.client.callback.handler.class": (
            "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
        )
    }
    return login("AWS_MSK_IAM", f'{MSK} awsProfileName="{profile}";', **handler)


@pytest.mark.usefixtures("aws")
def test_msk_iam() -> None:
    msk = Msk({"AKMIRROR": "hush/+"})
    with FakeCluster(door=Door("AWS_MSK_IAM", msk.judge)) as brokers:
        brokers.create_topic("t")
        brokers.write(TP, [b"a"])
        with FetcherRig(brokers, security=msk_login("mirror")) as rig:
            rig.fetcher.add(TP, 0)
            rig.wait_for([b"a"])
    assert {fields["host"] for fields in msk.seen} == {HOST}
    assert "hush" not in json.dumps(msk.seen)


@pytest.mark.usefixtures("aws")
def test_msk_iam_with_another_secret() -> None:
    with FakeCluster(door=Door("AWS_MSK_IAM", Msk({"AKMIRROR": "hush/+"}).judge)) as brokers:
        config = client_config(brokers, security=msk_login("wrong"))
        reason = "AWS_MSK_IAM login as 'AKMIRROR': Access denied; check that this identity may do"
        with pytest.raises(AuthenticationError, match=reason):
            check_reachable(config)


def test_clusters_share_a_login(brokers: FakeCluster) -> None:
    with Rig(brokers, security=ALICE) as one, Rig(brokers, security=ALICE) as other:
        assert isinstance(one.cluster, NetworkClient)
        assert one.cluster.security is other.cluster.security
