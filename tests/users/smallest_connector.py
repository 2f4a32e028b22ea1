"""C, for brokers of any release: the fixtures `clusters` and `worker` say which."""

from __future__ import annotations

from sparkmirror.types import TopicPartition
from tests.clusters import create_topic
from tests.mm2_suite.topics import ends
from tests.users import files
from tests.users.workers import WorkerProcess
from tests.users.worlds import Clusters


class SmallestConnector:
    """C: the worker has variables and no file, and its own cluster is the source."""

    def test_c_records_go_to_the_overridden_cluster(
        self, clusters: Clusters, worker: WorkerProcess
    ) -> None:
        create_topic(clusters.source, "to_replicate")
        clusters.fill("to_replicate", 1, 20)
        source, target = clusters.servers
        config = files.smallest("test_mirror", "to_replicate", source, target)
        config["producer.override.bootstrap.servers"] = target
        created = worker.ask("POST", "/connectors", {"name": "test_mirror", "config": config})
        assert created.status_code == 201, created.text
        assert worker.get("/connectors") == ["test_mirror"]
        clusters.wait_copied("to_replicate", "source.to_replicate")
        clusters.fill("to_replicate", 1, 20)
        clusters.wait_copied("to_replicate", "source.to_replicate")
        status = worker.wait_running("test_mirror", tasks=1, on=worker)
        assert "trace" not in status["connector"]
        assert "records go to" not in worker.log
        # Quotes are part of a group's name, and of no host.
        assert '[Worker clientId=connect-1, groupId="quickstart"] Herder started' in worker.log
        assert status["tasks"][0]["worker_id"].startswith("localhost:")

    def test_c_records_go_to_the_workers_own_cluster(
        self, clusters: Clusters, worker: WorkerProcess
    ) -> None:
        create_topic(clusters.source, "to_keep")
        clusters.fill("to_keep", 1, 20)
        source, target = clusters.servers
        config = files.smallest("test_home", "to_keep", source, target)
        created = worker.ask("POST", "/connectors", {"name": "test_home", "config": config})
        assert created.status_code == 201, created.text
        clusters.wait_arrived(clusters.source, "to_keep", "source.to_keep")
        # The topic is created on the target, as the config says, and stays empty.
        assert ends(clusters.target, ["source.to_keep"]) == {TopicPartition("source.to_keep", 0): 0}
        status = worker.wait_running("test_home", tasks=1, on=worker)
        messages = status["connector"]["trace"]
        assert messages.startswith("records go to 127.0.0.1:")
        assert (
            f"producer.override.bootstrap.servers={','.join(sorted(target.split(',')))}" in messages
        )
        warnings = [line for line in worker.log.splitlines() if messages in line]
        assert warnings
        assert "WARN" in warnings[0]
