"""Connect clients that others wrote and publish on PyPI, each through the life of a connector.

They build their own URLs and parse responses their own way; the worker behind them is the real one
over topics in memory. kafka-connect-py has the commands that people type, kafka-connect-api the
objects that scripts use, kafkaconnect a command that makes MirrorMaker 2's three connectors.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from click.testing import CliRunner
from kafka_connect import KafkaConnect
from kafka_connect.cli import cli as kc
from kafka_connect_api.errors import GenericNotFound
from kafka_connect_api.kafka_connect_api import Api, Cluster
from kafkaconnect.cli import main as kafkaconnect

from tests.clusters import wait_for
from tests.golden_rest.exchange import load_exchange
from tests.rest.golden_worker import GoldenWorker

SECONDS = 20.0
CREATIONS = {21: "Source", 23: "Checkpoint", 24: "Heartbeat"}
NAME = "a->b.MirrorSourceConnector"
NAMES = [f"a->b.Mirror{kind}Connector" for kind in CREATIONS.values()]


@pytest.fixture
def url(golden_worker: GoldenWorker) -> Iterator[str]:
    with golden_worker.served() as url:
        yield url


def request_of(number: int) -> dict[str, Any]:
    """What was sent to a genuine worker to create a connector."""
    request: dict[str, Any] = load_exchange(number).request_json
    return request if "config" in request else {"name": request["name"], "config": request}


def wait_until(condition: Callable[[], object]) -> None:
    wait_for(condition, within=SECONDS)


# -- kafka-connect-py ------------------------------------------------------------------------------


def test_kafka_connect_py_leads_a_connector_through_its_life(url: str) -> None:
    client = KafkaConnect(url)
    assert client.get_cluster_info()["version"] == "4.3.1"
    request = request_of(21)
    created = client.create_connector(request)
    assert (created["name"], created["config"]) == (NAME, request["config"])
    with pytest.raises(requests.HTTPError, match="409"):
        client.create_connector(request)
    wait_until(lambda: client.list_connectors(state="running") == [NAME])
    status = client.get_connector_status(NAME)
    assert [task["state"] for task in status["tasks"]] == ["RUNNING"]
    assert client.get_connector_config(NAME) == request["config"]
    assert client.get_connector(NAME)["tasks"] == [{"connector": NAME, "task": 0}]
    assert client.list_connectors(expand="status", pattern="a->.*")[NAME]["status"] == status

    client.pause_connector(NAME)
    wait_until(lambda: client.list_connectors(state="PAUSED") == [NAME])
    client.resume_connector(NAME)
    wait_until(lambda: client.list_connectors(state="RUNNING") == [NAME])
    assert client.restart_connector(NAME) is None
    accepted = client.restart_connector(NAME, include_tasks=True)
    assert accepted["connector"]["state"] == "RESTARTING"

    changed = {**request["config"], "refresh.topics.interval.seconds": "33"}
    assert client.update_connector(NAME, changed)["config"] == changed
    client.delete_connector(NAME)
    wait_until(lambda: client.list_connectors() == [])
    with pytest.raises(requests.HTTPError, match="404"):
        client.get_connector(NAME)


def test_commands_of_kafka_connect_py_print_the_response(url: str, tmp_path: Path) -> None:
    def run(*words: str) -> Any:
        result = CliRunner().invoke(kc, ["--url", url, *words])
        assert result.exit_code == 0, result.output
        return json.loads(result.output or "null")

    file = tmp_path / "source.json"
    file.write_text(json.dumps(request_of(21)))
    assert run("create", "--config-file", str(file))["name"] == NAME
    wait_until(lambda: run("list", "--state", "RUNNING") == [NAME])
    assert run("status", NAME)["connector"]["state"] == "RUNNING"
    assert run("config", NAME) == request_of(21)["config"]
    run("pause", NAME)
    wait_until(lambda: run("status", NAME)["connector"]["state"] == "PAUSED")
    plugins = {each["class"].rpartition(".")[2] for each in run("list-plugins")}
    assert plugins == {f"Mirror{kind}Connector" for kind in CREATIONS.values()}


# -- kafka-connect-api -----------------------------------------------------------------------------


def states(connector: Any) -> list[str]:
    """Of its tasks; one whose status is not written yet has none."""
    try:
        return [task.state for task in connector.tasks]
    except GenericNotFound:
        return []


def test_kafka_connect_api_sees_connectors_tasks_and_loggers(url: str) -> None:
    cluster = Cluster(Api(url=url))
    assert cluster.version == "4.3.1"
    for number in CREATIONS:
        cluster.api.post("/connectors", json=request_of(number))
    assert sorted(cluster.connectors) == sorted(NAMES)
    connector = cluster.connectors[NAME]
    assert connector.exists()
    wait_until(lambda: states(connector) == ["RUNNING"])
    assert connector.connector_class.endswith(".MirrorSourceConnector")
    assert connector.tasks[0].config["task.assigned.partitions"] == "heartbeats-0,ho-t1-0,ho-t1-1"

    connector.pause()
    wait_until(lambda: connector.state == "PAUSED")
    connector.resume()
    wait_until(lambda: states(connector) == ["RUNNING"])
    connector.cycle_connector()
    wait_until(lambda: connector.state == "RUNNING")
    connector.config = {**connector.config, "refresh.topics.interval.seconds": "33"}
    assert connector.config["refresh.topics.interval.seconds"] == "33"

    assert cluster.root_logger["level"] == "INFO"
    cluster.root_logger = "WARN"
    assert cluster.root_logger["level"] == "WARN"
    connector.delete()
    assert sorted(cluster.connectors) == sorted(set(NAMES) - {NAME})


# -- kafkaconnect ----------------------------------------------------------------------------------


def test_kafkaconnect_makes_the_three_connectors_of_mirror_maker_2(
    url: str, tmp_path: Path
) -> None:
    def run(*words: str) -> str:
        result = CliRunner().invoke(kafkaconnect, ["--connect", url, *words])
        assert result.exit_code == 0, result.output
        return result.output

    files = {}
    for number, kind in CREATIONS.items():
        files[kind] = str(tmp_path / f"{kind}.json")
        Path(files[kind]).write_text(json.dumps(request_of(number)["config"]))
    given = ("-h", files["Heartbeat"], "-c", files["Checkpoint"], "-m", files["Source"])

    checked = run("create", "mirrormaker2", *given, "--dry-run")
    assert checked.count('"error_count": 0') == 3
    assert json.loads(run("list")) == []

    run("create", "mirrormaker2", *given, "--name", "dc1")
    names = ["dc1-checkpoint", "dc1-heartbeat", "dc1-mirror-source"]
    assert sorted(json.loads(run("list"))) == names
    for name in names:
        wait_until(lambda name=name: '"RUNNING"' in run("status", name))  # type: ignore[misc]
    wait_until(
        lambda: json.loads(run("topics", "dc1-mirror-source"))["dc1-mirror-source"]["topics"]
    )
    assert json.loads(run("config", "dc1-heartbeat"))["name"] == "dc1-heartbeat"
    run("delete", "dc1-heartbeat")
    assert sorted(json.loads(run("list"))) == ["dc1-checkpoint", "dc1-mirror-source"]
