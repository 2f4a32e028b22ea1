"""Every failure ends with its own exit code and a message a person can use."""

from __future__ import annotations

import subprocess
import sys
import types
from collections.abc import Callable

import pytest
import typer

import sparkmirror
from sparkmirror.cli import main as cli
from sparkmirror.config.masking import remember
from sparkmirror.errors import ConfigError, ConfigErrors, MirrorError, MissingPart


def run(*words: str) -> int | str | None:
    with pytest.raises(SystemExit) as ended:
        cli.main(list(words))
    return ended.value.code


@pytest.fixture
def command_that(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Make `sparkmirror probe` call a function."""

    def install(action: Callable[[], None]) -> None:
        module = types.ModuleType("probe_command")

        def register(app: typer.Typer) -> None:
            app.command("probe", help="Only in tests.")(action)

        module.__dict__["register"] = register
        monkeypatch.setitem(sys.modules, "probe_command", module)
        monkeypatch.setitem(cli.COMMANDS, "probe", cli.Command("probe_command", "Only in tests."))

    return install


def raising(error: BaseException) -> Callable[[], None]:
    def action() -> None:
        raise error

    return action


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        pytest.param(MirrorError("one\ntwo"), 1, ["one", "two"], id="error"),
        pytest.param(MissingPart("install it"), 1, ["install it"], id="missing part"),
        pytest.param(ConfigError("k", "v", "bad"), 2, ["k=v: bad"], id="one setting"),
        pytest.param(
            ConfigErrors([ConfigError("k", 1, "bad"), ConfigError("l", 2, "worse")]),
            2,
            ["k=1: bad", "l=2: worse"],
            id="settings",
        ),
        pytest.param(
            ValueError("oops"),
            70,
            ["ValueError: oops (a bug; use --debug for the traceback)"],
            id="bug",
        ),
        pytest.param(KeyboardInterrupt(), 130, [], id="interrupted"),
    ],
)
def test_error_becomes_exit_code_and_lines(
    command_that: Callable[[Callable[[], None]], None],
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
    said: list[str],
) -> None:
    command_that(raising(error))
    assert run("probe") == code
    assert capsys.readouterr().err.splitlines() == [f"sparkmirror: {line}" for line in said]


@pytest.mark.parametrize("words", [("--debug", "probe"), ("probe", "--debug")])
def test_debug_shows_the_traceback_wherever_it_stands(
    command_that: Callable[[Callable[[], None]], None],
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
) -> None:
    command_that(raising(ValueError("oops")))
    assert run(*words) == 70
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert said.endswith("sparkmirror: ValueError: oops\n")


def test_no_secret_is_shown_not_even_in_a_traceback(
    command_that: Callable[[Callable[[], None]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    remember("planted-in-a-command-1")
    command_that(raising(ValueError("with planted-in-a-command-1")))
    assert run("probe", "--debug") == 70
    said = capsys.readouterr().err
    assert "planted" not in said
    assert said.count("ValueError: with [hidden]") == 2


def test_success_is_exit_code_0(command_that: Callable[[Callable[[], None]], None]) -> None:
    command_that(lambda: None)
    assert run("probe") == 0


def test_version_is_the_package_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out == f"sparkmirror {sparkmirror.__version__}\n"


def test_unknown_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("kafak") == 2
    assert "kafak" in capsys.readouterr().err


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    listed = capsys.readouterr().out
    assert all(f" {name} " in listed for name in cli.COMMANDS)


def test_help_before_a_command_is_that_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help", "run") == 0
    assert " deploy " in capsys.readouterr().out


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_the_line_in_the_list_begins_the_help_of_the_command(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command, "--help") == 0
    _, *described = capsys.readouterr().out.split("\n\n")
    assert " ".join(described[0].split()) == cli.COMMANDS[command].help


def _modules_after(code: str) -> set[str]:
    program = f"import sys\n{code}\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


def _help_of(*words: str) -> str:
    return (
        "from sparkmirror.cli.main import main\n"
        f"try: main({[*words, '--help']!r})\nexcept SystemExit: pass"
    )


def test_the_list_of_commands_imports_none_of_them() -> None:
    loaded = _modules_after(_help_of())
    ours = {name for name in loaded if name.startswith("sparkmirror.cli.")}
    assert ours == {"sparkmirror.cli.main"}


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_help_of_a_command_imports_no_engine(command: str) -> None:
    loaded = _modules_after(_help_of(command))
    assert cli.COMMANDS[command].module in loaded
    assert {"pyspark", "py4j", "uvicorn", "confluent_kafka"} & loaded == set()


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command, "--help") == 0
    assert f"sparkmirror {command}" in capsys.readouterr().out


def test_it_is_a_module_too() -> None:
    command = [sys.executable, "-m", "sparkmirror", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, f"sparkmirror {sparkmirror.__version__}\n")


@pytest.mark.parametrize("words", [("groups", "sync"), ("deploy",), ("run",), ("kafka", "start")])
def test_help_cuts_no_option_off(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(*words, "--help") == 0
    said = capsys.readouterr().out
    assert "\u2026" not in said
    if words == ("groups", "sync"):
        assert "-pfp, --properties, --propertiesFilePath FILE" in said
        assert "-rps, --separator, --replicationPolicySeparator" in said
