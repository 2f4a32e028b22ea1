"""`sparkmirror worker` and the environment: with a file, without one, and what Spark inherits."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from sparkmirror.cli import worker
from sparkmirror.config.files.providers import JAVA_PACKAGE
from sparkmirror.config.worker.log_variables import LevelVariable
from sparkmirror.config.worker.worker_file import load_worker_variables
from tests.config.worker_files import SMALLEST

CONFIGURATION = 2
VARIABLES = {
    "CONNECT_BOOTSTRAP_SERVERS": "127.0.0.1:1",
    "CONNECT_GROUP_ID": "g",
    "CONNECT_CONFIG_STORAGE_TOPIC": "c",
    "CONNECT_OFFSET_STORAGE_TOPIC": "o",
    "CONNECT_STATUS_STORAGE_TOPIC": "s",
    "CONNECT_LISTENERS": "http://127.0.0.1:0",
}
IGNORED = "is used; these variables are ignored: "


def run_worker(environ: Mapping[str, str], *words: str | Path) -> subprocess.CompletedProcess[str]:
    own = {name: text for name, text in os.environ.items() if not name.startswith("CONNECT_")}
    return subprocess.run(
        [sys.executable, "-m", "sparkmirror.cli.main", "worker", *map(str, words)],
        env={**own, **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def errors_of(done: subprocess.CompletedProcess[str]) -> list[str]:
    """All that it says; nothing was started, or there would be lines of a log."""
    assert (done.returncode, done.stdout) == (CONFIGURATION, "")
    lines = done.stderr.splitlines()
    assert all(line.startswith("sparkmirror: ") for line in lines)
    return [line.removeprefix("sparkmirror: ") for line in lines]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "connect-distributed.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in SMALLEST.items()), "ascii")
    return path


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The environment has VARIABLES, and is as it was afterwards."""
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


@pytest.fixture
def levels() -> Iterator[None]:
    """Restores the root's level afterwards; conftest restores those of our own loggers."""
    before = logging.root.level
    yield
    logging.root.setLevel(before)


# -- the process ------------------------------------------------------------------------------


def test_neither_file_nor_variables_is_wrong_usage() -> None:
    (error,) = errors_of(run_worker({}))
    assert error.startswith("FILE: missing, and no environment variable CONNECT_* has a setting")


def test_variables_without_bootstrap_servers_are_an_error() -> None:
    environ = {**VARIABLES, "CONNECT_SASL_JAAS_CONFIG": "planted-1 required;"}
    del environ["CONNECT_BOOTSTRAP_SERVERS"]
    errors = errors_of(run_worker(environ))
    assert any(
        error.startswith("CONNECT_BOOTSTRAP_SERVERS (bootstrap.servers): cluster 'worker' has no ")
        for error in errors
    )
    assert "planted" not in "".join(errors)


def test_two_variables_with_one_key_are_an_error() -> None:
    errors = errors_of(run_worker({**VARIABLES, "CONNECT_group_ID": "planted-2"}))
    assert errors == [
        "CONNECT_GROUP_ID and CONNECT_group_ID: set the same key, group.id; keep one of them"
    ]


def test_unreachable_brokers_are_named_by_their_variable() -> None:
    done = run_worker({**VARIABLES, "CONNECT_SSL_KEY_PASSWORD": "planted-3-password"})
    assert done.returncode == 1
    assert "check CONNECT_BOOTSTRAP_SERVERS (bootstrap.servers) and that its " in done.stderr
    assert "planted" not in done.stderr


def test_file_counts_alone(file: Path) -> None:
    file.write_text("bootstrap.servers=127.0.0.1:1\nlisteners=http://127.0.0.1:0\n", "ascii")
    errors = errors_of(run_worker(VARIABLES, file))
    assert f"{file}: group.id: is required and not set; set it to a text" in errors
    assert "CONNECT_" not in "".join(errors)


# -- the settings -----------------------------------------------------------------------------


def test_variables_beside_a_file_are_named_in_one_line(
    file: Path, given: pytest.MonkeyPatch
) -> None:
    given.setenv("CONNECT_URL", "http://for.mm2.sh:1")
    config = worker._load(file)
    (line,) = [text for text in config.warnings if "CONNECT_" in text]
    assert line == f"only {file} {IGNORED}{', '.join(sorted(VARIABLES))}"
    assert config.group.group_id == SMALLEST["group.id"]


def test_no_variables_beside_a_file_are_no_news(file: Path) -> None:
    assert [name for name in os.environ if name.startswith("CONNECT_")] == []
    assert worker._load(file).warnings == ()


@pytest.mark.parametrize("with_file", [False, True])
def test_what_is_started_later_does_not_inherit_them(
    file: Path, given: pytest.MonkeyPatch, *, with_file: bool
) -> None:
    given.setenv("CONNECT_SASL_JAAS_CONFIG", "planted-4 required;")
    worker._load(file if with_file else None)
    shown = subprocess.run(["env"], capture_output=True, text=True, check=True).stdout
    assert "CONNECT_" not in shown
    assert "planted-4" not in shown


def test_connectors_may_still_name_them(given: pytest.MonkeyPatch) -> None:
    given.setenv("CONNECT_CONFIG_PROVIDERS", "env")
    given.setenv("CONNECT_CONFIG_PROVIDERS_ENV_CLASS", f"{JAVA_PACKAGE}EnvVarConfigProvider")
    config = worker._load(None)
    assert "CONNECT_GROUP_ID" not in os.environ
    assert config.providers["env"].find("", "CONNECT_GROUP_ID") == "g"


# -- the log ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("levels")
def test_levels_of_variables_are_set() -> None:
    file = load_worker_variables(
        {
            **VARIABLES,
            "CONNECT_LOG4J_ROOT_LOGLEVEL": "ERROR",
            "CONNECT_LOG4J_LOGGERS": "org.apache.kafka.connect.mirror=DEBUG",
        }
    )
    worker._set_levels(file.log_levels, except_root=False)
    assert logging.getLogger("sparkmirror").getEffectiveLevel() == logging.ERROR
    mirror = logging.getLogger("sparkmirror.connect.source.mirror_source_connector")
    assert mirror.getEffectiveLevel() == logging.DEBUG


@pytest.mark.usefixtures("levels")
def test_option_is_stronger_than_the_roots_level() -> None:
    before = logging.getLogger("sparkmirror").level
    levels = [LevelVariable("root", "OFF"), LevelVariable("sparkmirror.wire", "DEBUG")]
    worker._set_levels(levels, except_root=True)
    assert logging.getLogger("sparkmirror").level == before
    assert logging.getLogger("sparkmirror.wire").level == logging.DEBUG


# -- the form of the log ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variables", "code"),
    [
        pytest.param({"CONNECT_SPARKMIRROR_LOG_FORMAT": "json"}, 1, id="a key"),
        pytest.param({"SPARKMIRROR_LOG_FORMAT": "json"}, 1, id="for every command"),
        pytest.param(
            {"SPARKMIRROR_LOG_FORMAT": "json", "CONNECT_LOG4J_ROOT_LOGLEVEL": "OFF"},
            1,
            id="no log at all",
        ),
        pytest.param({"SPARKMIRROR_LOG_FORMAT": "json", "CONNECT_GROUP_ID": ""}, 2, id="bad file"),
    ],
)
def test_every_line_is_json_up_to_the_error_that_ends_it(
    variables: Mapping[str, str], code: int
) -> None:
    done = run_worker({**VARIABLES, **variables})
    assert done.returncode == code, done.stderr
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert lines[-1]["level"] == "ERROR"
    assert "CONNECT_" in lines[-1]["message"]


def test_the_command_line_has_the_last_word() -> None:
    environ = {**VARIABLES, "CONNECT_SPARKMIRROR_LOG_FORMAT": "json"}
    done = run_worker(environ, "--log-format", "text")
    assert done.stderr.splitlines()[-1].startswith("sparkmirror: ")


def test_an_unknown_form_is_an_error() -> None:
    errors = errors_of(run_worker({**VARIABLES, "CONNECT_SPARKMIRROR_LOG_FORMAT": "xml"}))
    assert [error for error in errors if "use one of text, json" in error]
