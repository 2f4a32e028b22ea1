"""A scrape of a worker that has begun nothing yet, and whose cluster does not respond."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

from sparkmirror.cli.watching.monitoring import Monitoring
from sparkmirror.connect.runtime import connect_distributed
from sparkmirror.connect.storage import all_offsets
from sparkmirror.monitoring.monitored import MonitoredGroup
from tests.certificates import Certificates
from tests.config.worker_files import worker_with
from tests.monitoring.metrics.expositions import Exposition

PARTS = ("worker", "tasks", "lag", "spark", "process", "certificates")


def test_nothing_is_waited_for_and_nothing_fails(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    file = worker_with(
        {
            "bootstrap.servers": "127.0.0.1:1",
            "listeners": "https://127.0.0.1:0",
            "listeners.https.ssl.keystore.location": str(certificates.pem("broker")),
            "listeners.https.ssl.keystore.type": "PEM",
        }
    )
    with (
        mock.patch.object(all_offsets, "prepare_storage_topic", return_value=25),
        mock.patch.object(connect_distributed, "_cluster_id", return_value="c"),
    ):
        worker = connect_distributed.ConnectDistributed(file, "https://127.0.0.1:1/")
    group = MonitoredGroup("", worker.cluster, worker.herder)
    with Monitoring(lambda: [group], file.metrics, file.rest) as monitoring:
        found = Exposition(monitoring.metrics().raw.decode())
    parts = {each: found.value("sparkmirror_metrics_part_up", part=each) for each in PARTS}
    assert parts == dict.fromkeys(PARTS, 1.0)
    assert found.value("sparkmirror_spark_up") == 0
    assert found.value("sparkmirror_worker_healthy") == 0
    expiry = "sparkmirror_certificate_expiry_timestamp_seconds"
    assert found.value(expiry, use="keystore", name="listeners") > 1.7e9
