"""Options of `sparkmirror groups` that name security, and files of connectors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sparkmirror.cli import main as cli
from sparkmirror.tools.groups.options import SyncOptions, read_sync_options


@pytest.mark.parametrize("option", ["-ssl", "-mtls"])
def test_tls_of_the_sample_application_is_the_protocol_of_the_client(
    option: str, tmp_path: Path
) -> None:
    keys = {
        "bootstrap.servers": "127.0.0.1:1",
        "SSL_TRUSTSTORE_LOCATION_CONFIG": "/t.jks",
        "SSL_KEYSTORE_LOCATION_CONFIG": "/k.jks",
        "SSL_KEYSTORE_PASSWORD_CONFIG": "of-the-store",
    }
    file = tmp_path / "consumer.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
    options = SyncOptions("g", file, "us", tls=option == "-ssl", mutual_tls=option == "-mtls")
    security = read_sync_options(options).admin.security
    assert security["security.protocol"] == "SSL"
    assert security["ssl.truststore.location"] == "/t.jks"


def test_translate_takes_the_settings_of_a_checkpoint_connector(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mm2-msc.json"
    file.write_text(json.dumps(connector("Source", "us", "eu", "127.0.0.1:1", "127.0.0.1:1")))
    with pytest.raises(SystemExit) as ended:
        cli.main(["groups", "translate", "-pfp", str(file), "--group", "g"])
    assert ended.value.code == 2
    assert "name the file of the MirrorCheckpointConnector" in capsys.readouterr().err


def connector(kind: str, us: str, eu: str, source: str, target: str) -> dict[str, str]:
    return {
        "name": f"mm2-{kind}",
        "connector.class": f"org.apache.kafka.connect.mirror.Mirror{kind}Connector",
        "source.cluster.alias": us,
        "target.cluster.alias": eu,
        "source.cluster.bootstrap.servers": source,
        "target.cluster.bootstrap.servers": target,
    }
