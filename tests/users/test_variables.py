"""A worker as Debezium's image is started: its names without a prefix, beside CONNECT_* variables.

C, whose variables all have the prefix, is in test_connect_mode.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.ports import HOST, ReservedPort
from tests.clusters import unique_name
from tests.mm2_suite.topics import topic_names
from tests.users.files import PATIENT_VARIABLES
from tests.users.workers import run_worker

pytestmark = pytest.mark.kafka


def test_debeziums_names_start_a_worker(target_cluster: KafkaCluster, tmp_path: Path) -> None:
    group = unique_name("debezium")
    topics = {
        f"{kind.upper()}_STORAGE_TOPIC": f"{group}-{kind}"
        for kind in ("config", "offset", "status")
    }
    factors = {f"CONNECT_{name.replace('TOPIC', 'REPLICATION_FACTOR')}": "1" for name in topics}
    with ReservedPort() as port:
        own = {
            "BOOTSTRAP_SERVERS": target_cluster.bootstrap_servers,
            "GROUP_ID": group,
            "REST_HOST_NAME": HOST,
            "REST_PORT": str(port.number),
            "ADVERTISED_HOST_NAME": "localhost",
            "ADVERTISED_PORT": str(port.number),
            "OFFSET_FLUSH_INTERVAL_MS": "10000",
        }
        variables = {**own, **topics, **factors, **PATIENT_VARIABLES}
        with run_worker(tmp_path, variables) as worker:
            assert worker.worker_id == f"localhost:{port.number}"
            assert worker.get("/connectors") == []
            assert set(topics.values()) <= topic_names(target_cluster)
            assert f"groupId={group}] Herder started" in worker.log
