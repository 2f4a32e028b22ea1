"""A stop at any moment of the start: at once, without a complaint, and nothing is left behind."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from sparkmirror.embedded import KafkaCluster
from tests.kafka.mirror_process import START_SECONDS, STOP_SECONDS, Mirror, assert_gone
from tests.kafka.records import fill, new_topic

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(400)]

# A line of the log, which the start has come to.
MOMENTS = (
    "flows:",
    "leads, generation",
    "Spark local",
    "[MirrorSourceConnector|worker]",
    "flows started",
)


def test_a_stop_at_any_moment_of_the_start(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_cluster)
    fill(source_cluster, topic, 100)
    mirror = Mirror(tmp_path, source_cluster, target_cluster, topic)
    seconds = {}
    with mirror.ending():
        for moment in MOMENTS:
            mirror.start(until=moment)
            processes = mirror.processes()
            seconds[moment] = mirror.stop(signal.SIGTERM, group=True)
            assert_gone(processes)
            assert "INFO stopped\n" in mirror.log()
            assert "WARNING" not in mirror.log(), mirror.log_end()
    print(seconds)  # noqa: T201
    assert max(seconds.values()) < STOP_SECONDS


MM2 = """clusters = a, b
a.bootstrap.servers = 127.0.0.1:{port}
b.bootstrap.servers = 127.0.0.1:{port}
a->b.enabled = true
"""
WORKER = """bootstrap.servers = 127.0.0.1:{port}
group.id = g
listeners = http://127.0.0.1:0
offset.storage.topic = o
config.storage.topic = c
status.storage.topic = s
"""


@pytest.mark.parametrize(("command", "text"), [("run", MM2), ("worker", WORKER)])
def test_a_stop_does_not_wait_for_a_cluster_that_says_nothing(
    tmp_path: Path, command: str, text: str
) -> None:
    file, log_path = tmp_path / "file.properties", tmp_path / "log"
    words = [sys.executable, "-m", "sparkmirror.cli.main", command, str(file)]
    with socket.create_server(("127.0.0.1", 0)) as silent, log_path.open("wb") as log:
        silent.settimeout(START_SECONDS)
        file.write_text(text.format(port=silent.getsockname()[1]))
        with subprocess.Popen(words, stderr=log) as process:
            try:
                caller, _ = silent.accept()
                with caller:
                    process.send_signal(signal.SIGTERM)
                    code = process.wait(STOP_SECONDS)
            finally:
                process.kill()
    assert (code, log_path.read_text().splitlines()[-1][-12:]) == (0, "INFO stopped")
