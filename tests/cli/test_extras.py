"""Without the extras everything else works, and what needs one says what to install."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.cli.main import COMMANDS

# Runs the program as it is where some packages are not installed.
WITHOUT = """
import sys
class Missing:
    names = sys.argv.pop(1).split(",")
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
from sparkmirror.cli.main import main
main()
"""
EXTRAS = "botocore,psutil,confluent_kafka"


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT, EXTRAS, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("words", [("demo",), ("kafka", "status"), ("kafka", "--help")])
def test_a_command_says_what_it_needs(words: tuple[str, ...]) -> None:
    done = run(*words)
    assert done.returncode == 1
    assert done.stderr.startswith(f"sparkmirror: sparkmirror {words[0]} needs ")
    assert done.stderr.endswith("is not installed: pip install 'sparkmirror[demo]'\n")


def test_all_other_commands_have_help() -> None:
    others = [name for name, command in COMMANDS.items() if not command.extra]
    assert len(others) == len(COMMANDS) - 2
    for name in others:
        assert run(name, "--help").returncode == 0


@pytest.fixture
def listener() -> Iterator[int]:
    """A port at which connections are accepted, and nothing else happens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def write_file(folder: Path, port: int) -> Path:
    file = folder / "mm2.properties"
    file.write_text(
        f"clusters = a, b\na.bootstrap.servers = 127.0.0.1:{port}\n"
        f"b.bootstrap.servers = 127.0.0.1:{port}\na->b.enabled = true\na->b.topics = x\n"
        "security.protocol = SASL_PLAINTEXT\nsasl.mechanism = AWS_MSK_IAM\n"
        "sasl.jaas.config = software.amazon.msk.auth.iam.IAMLoginModule required;\n"
    )
    return file


@pytest.mark.parametrize("command", ["check", "run"])
def test_an_iam_login_says_what_it_needs(command: str, tmp_path: Path, listener: int) -> None:
    done = run(command, write_file(tmp_path, listener))
    assert done.returncode == 1
    output = "AWS IAM needs botocore, which is not installed: pip install 'sparkmirror[aws]'"
    assert f"cluster 'a': {output}" in done.stdout + done.stderr


def test_the_production_path_needs_no_extra() -> None:
    """What a worker imports: Spark, REST and all clients."""
    code = WITHOUT.replace(
        "from sparkmirror.cli.main import main\nmain()",
        "import sparkmirror.cli.serving, sparkmirror.connect.dedicated.mirror_maker\n"
        "import sparkmirror.connect.legacy.legacy_mirror, sparkmirror.spark.task_daemon",
    )
    command = [sys.executable, "-c", code, EXTRAS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
