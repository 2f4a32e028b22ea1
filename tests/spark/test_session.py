"""The settings of Spark's session; the session itself is tested on real clusters."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from sparkmirror.errors import ConfigError
from sparkmirror.spark import session
from sparkmirror.spark.session import JVM_OPTIONS, MASTER, PYTHON, _parse_port, complete_settings


def test_without_settings_spark_runs_in_this_process_with_room_for_all_tasks() -> None:
    found = complete_settings({}, 3)
    assert found[MASTER] == "local[7]"
    assert found["spark.driver.bindAddress"] == "127.0.0.1"
    assert found["spark.speculation"] == "false"


def test_the_users_settings_win() -> None:
    own = {"spark.app.name": "mine", "spark.ui.enabled": "true", "spark.new.key": "x"}
    found = complete_settings({MASTER: "local[2]", **own}, 3)
    assert found[MASTER] == "local[2]"
    assert {key: found[key] for key in own} == own


def test_another_python_gets_the_daemon_of_its_own_pyspark() -> None:
    module = "spark.python.daemon.module"
    assert complete_settings({}, 1)[module] == "sparkmirror.spark.task_daemon"
    assert module not in complete_settings({PYTHON: "/opt/other/bin/python"}, 1)
    assert module not in complete_settings({MASTER: "spark://host:7077"}, 1)


def test_jvm_options_of_the_user_come_after_ours() -> None:
    found = complete_settings({JVM_OPTIONS: "-Xss4m"}, 1)[JVM_OPTIONS]
    assert found.endswith(" -Xss4m")
    assert "-Dlog4j2.configurationFile=file:" in found


def test_a_cluster_reaches_the_driver_from_outside() -> None:
    found = complete_settings({MASTER: "spark://host:7077"}, 1)
    assert "spark.driver.bindAddress" not in found
    assert "spark.driver.host" not in found


def test_nothing_of_ours_changes_what_was_given() -> None:
    given = {MASTER: "local[1]"}
    complete_settings(given, 1)
    assert given == {MASTER: "local[1]"}


@pytest.mark.parametrize("port", ["-1", "65536", "many", ""])
def test_a_link_port_that_is_none_is_refused(port: str) -> None:
    with pytest.raises(ConfigError, match=r"spark\.sparkmirror\.link\.port"):
        _parse_port(port)


def test_files_beside_the_worker_are_no_modules_of_its_tasks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("SPARK_HOME", "PYSPARK_PYTHON", "PYTHONSAFEPATH"):
        monkeypatch.setenv(name, "")
    session._set_environment({}, is_local=True)
    (tmp_path / "datetime.py").write_text("raise SystemExit('not the one of Python')")
    python = os.environ["PYSPARK_PYTHON"]
    subprocess.run([python, "-m", "calendar"], cwd=tmp_path, check=True, capture_output=True)
