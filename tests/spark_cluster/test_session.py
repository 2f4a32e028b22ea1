"""Which settings Spark gets, and which it is spared."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.errors import ConfigError, TransportError
from sparkmirror.spark.session import (
    CLUSTER_DEFAULTS,
    DEFAULTS,
    LINK_PORT,
    SPARE_SLOTS,
    SparkEngine,
    complete_settings,
    standalone_addresses,
)

DOCUMENT = Path(__file__).parents[2] / "docs" / "spark-clusters.md"
# Spark's own defaults, or names.
NOT_WORTH_A_WORD = {"spark.app.name", "spark.python.worker.reuse"}
HEARTBEAT = "spark.executor.heartbeatInterval"
JVM_OPTIONS = "spark.driver.extraJavaOptions"


def test_without_settings_spark_runs_in_this_process_with_a_slot_for_every_task() -> None:
    settings = complete_settings({}, slots_wanted=3)
    assert settings["spark.master"] == f"local[{3 + SPARE_SLOTS}]"
    assert settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert settings["spark.ui.enabled"] == "false"
    assert HEARTBEAT not in settings


def test_on_a_cluster_lost_machines_are_missed_soon() -> None:
    settings = complete_settings({"spark.master": "spark://h:7077"}, slots_wanted=3)
    assert settings["spark.master"] == "spark://h:7077"
    assert settings[HEARTBEAT] == "2s"
    assert "spark.driver.bindAddress" not in settings


@pytest.mark.parametrize("key", sorted({*DEFAULTS, *CLUSTER_DEFAULTS} - NOT_WORTH_A_WORD))
def test_default_is_in_the_document(key: str) -> None:
    assert f"`{key}={(DEFAULTS | CLUSTER_DEFAULTS)[key]}`" in DOCUMENT.read_text()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.ui.enabled", "true"),
        ("spark.speculation", "true"),
        ("spark.task.maxFailures", "4"),
        ("spark.driver.memory", "2g"),
        ("spark.something.new", "x"),
    ],
)
def test_what_the_user_sets_wins(key: str, value: str) -> None:
    assert complete_settings({key: value}, 1)[key] == value


def test_options_of_the_user_come_after_ours() -> None:
    options = complete_settings({JVM_OPTIONS: "-Dlog4j2.configurationFile=/my"}, 1)[JVM_OPTIONS]
    assert options.index("log4j2.properties") < options.index("/my")


@pytest.mark.parametrize(
    ("master", "addresses"),
    [
        ("local[2]", []),
        ("yarn", []),
        ("k8s://https://h:6443", []),
        ("spark://h:7077", [("h", 7077)]),
        ("spark://h:7077,i:7078", [("h", 7077), ("i", 7078)]),
        ("spark://[::1]:7077", [("[::1]", 7077)]),
    ],
)
def test_masters_of_an_address(master: str, addresses: list[tuple[str, int]]) -> None:
    assert standalone_addresses(master) == addresses


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        pytest.param({"spark.master": "mesos://h"}, "spark.master=mesos://h", id="unknown kind"),
        pytest.param({"spark.master": "local["}, "use local", id="half a word"),
        pytest.param({"spark.master": "spark://h"}, "'h' is not host:port", id="no port"),
    ],
)
def test_master_that_cannot_be_is_a_setting_to_change(settings: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        SparkEngine(settings, 1)
    assert text in str(caught.value)


def test_silent_master_is_reported_at_once() -> None:
    with pytest.raises(TransportError, match=r"spark://127.0.0.1:1: .*refused; check spark.master"):
        SparkEngine({"spark.master": "spark://127.0.0.1:1"}, 1)


def test_link_port_that_is_none_is_a_setting_to_change() -> None:
    with pytest.raises(ConfigError, match=f"{LINK_PORT}=70000: not a port"):
        SparkEngine({LINK_PORT: "70000"}, 1)
