"""The mirror's process: a wrong end is noticed, its log is shown, a stop has a deadline."""

from __future__ import annotations

import sys
from pathlib import Path

import javaproperties
import pytest

from sparkmirror.demo.mirror_process import ENGINES, Engine, MirrorEnded, MirrorProcess
from sparkmirror.demo.mirror_process import mm2_properties as make_properties
from tests.clusters import wait_for

ORDERLY = "import signal, sys; signal.signal(15, lambda *_: sys.exit(0)); print('up', flush=True)"
STUBBORN = "import signal; signal.signal(15, signal.SIG_IGN); print('up', flush=True)"


def started(folder: Path, program: str, stop_seconds: float = 20.0) -> MirrorProcess:
    def command(_file: Path) -> list[str]:
        return [sys.executable, "-c", f"{program}; import time; time.sleep(60)"]

    engine = Engine("mirror", command, stop_seconds=stop_seconds, exit_code=0)
    mirror = MirrorProcess(engine, folder / "mm2.properties", detached=False)
    mirror.start()
    return mirror


def wait_up(mirror: MirrorProcess) -> None:
    wait_for(lambda: "up" in mirror.log_path.read_text(), within=20, describe="it is up")


def test_stop_in_time_reports_its_duration(tmp_path: Path) -> None:
    mirror = started(tmp_path, ORDERLY)
    wait_up(mirror)
    assert 0 <= mirror.stop() < 20
    assert mirror.running_pid is None


def test_stop_fails_when_the_mirror_keeps_running(tmp_path: Path) -> None:
    mirror = started(tmp_path, STUBBORN, stop_seconds=0.5)
    wait_up(mirror)
    with pytest.raises(MirrorEnded, match=r"still running 0.5 s after SIGTERM[^$]*up"):
        mirror.stop()
    mirror.kill()
    assert mirror.running_pid is None


def test_mirror_that_ended_is_noticed_with_its_log(tmp_path: Path) -> None:
    mirror = started(tmp_path, "import sys; sys.exit('no such cluster')")
    wait_for(lambda: mirror.running_pid is None, within=20, describe="it has ended")
    with pytest.raises(MirrorEnded, match=r"exit code 1; [^$]*no such cluster"):
        mirror.check_running()


def test_properties_are_read_back_with_changes_made() -> None:
    changes = {"tasks.max": "5", "spark.master": "local[8]"}
    text = make_properties("a:1", "b:2", ["orders", "codec-.*"], changes)
    properties = javaproperties.loads(text)
    assert properties["source.bootstrap.servers"] == "a:1"
    assert properties["source->target.topics"] == "orders, codec-.*"
    assert properties["source.consumer.isolation.level"] == "read_committed"
    assert {key: properties[key] for key in changes} == changes
    # Every key once: a file with a key twice is rejected.
    assert text.count("tasks.max") == 1


def test_sparkmirror_must_stop_within_ten_seconds() -> None:
    assert ENGINES["sparkmirror"].stop_seconds == 10
