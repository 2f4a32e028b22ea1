"""A cluster changes its release under a running mirror, which copies from it and to it.

Its one broker is stopped and started with other jars, on the same data; both flows wait for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from sparkmirror.embedded import KAFKA_VERSION, KafkaCluster
from sparkmirror.embedded.kafka_releases import find_release
from sparkmirror.embedded.mirror_maker import run_java_tool
from tests.clusters import create_topic, side_by_side, start_cluster, wait_for
from tests.kafka.mirror_process import Mirror
from tests.kafka.records import Feeder
from tests.kafka.releases.scene import (
    HEAP,
    LISTENERS,
    NEW_ALIAS,
    Flow,
    broker_properties,
    make_mirror,
)
from tests.mm2_suite.topics import ends

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(600)]

SECONDS = 60.0
TOPIC = "live-orders"
PARTITIONS = 2
PER_SECOND = 200
# What keeps a broker from writing what the release before does not understand.
PROTOCOL = "inter.broker.protocol.version"


@dataclass
class Upgrade:
    """The cluster that changes, and records that keep coming on both sides."""

    cluster: KafkaCluster
    mirror: Mirror
    flows: tuple[Flow, Flow]
    feeders: list[Feeder] = field(default_factory=list)

    def to(self, version: str) -> None:
        """Change the release, and wait until records of afterwards are copied both ways."""
        (broker,) = self.cluster.brokers
        self.cluster.upgrade(broker, version)
        self.wait_for_records()

    def wait_for_records(self) -> None:
        """Wait until more records are copied than have been written so far."""
        written = [list(feeder.counts) for feeder in self.feeders]
        for flow, counts in zip(self.flows, written, strict=True):
            wait_for(
                partial(_is_beyond, flow, counts),
                within=SECONDS,
                describe=partial(_describe, flow, counts),
            )


def _is_beyond(flow: Flow, counts: Sequence[int]) -> bool:
    found = ends(flow.target, [flow.remote(TOPIC)])
    is_complete = len(found) == len(counts)
    return is_complete and all(end > counts[tp.partition] for tp, end in found.items())


def _describe(flow: Flow, counts: Sequence[int]) -> str:
    return f"more than {counts} in {flow.remote(TOPIC)}; {flow.mirror.log_end()}"


@contextmanager
def upgrading(version: str, folder: Path, properties: dict[str, str]) -> Iterator[Upgrade]:
    """The clusters, the mirror, and the producers; at the end everything is compared."""
    clusters = [
        start_cluster(
            name,
            version=release,
            heap=HEAP,
            listeners=LISTENERS,
            properties={**broker_properties(release), **more},
        )
        for name, release, more in (("changing", version, properties), ("new", KAFKA_VERSION, {}))
    ]
    with side_by_side(clusters) as (changing, new):
        for cluster in (changing, new):
            create_topic(cluster, TOPIC, partitions=PARTITIONS)
        mirror = make_mirror(folder, changing, new)
        flows = (Flow(changing, new, mirror.alias, mirror), Flow(new, changing, NEW_ALIAS, mirror))
        with mirror.ending():
            mirror.start(until="2 flows started")
            upgrade = Upgrade(changing, mirror, flows)
            with ExitStack() as stack:
                for flow in flows:
                    feeder = Feeder(flow.source, TOPIC, PARTITIONS, per_second=PER_SECOND)
                    upgrade.feeders.append(stack.enter_context(feeder))
                upgrade.wait_for_records()
                yield upgrade
            for flow in flows:
                flow.wait_survived(TOPIC, PARTITIONS)
            log = mirror.log()
            assert len(re.findall("flows started", log)) == 1
            assert "was deleted" not in log
            assert "recreated" not in log


def test_2_7_to_2_8_and_back_and_there_for_good(tmp_path: Path) -> None:
    """At the end topics get ids, which is no sign that they were deleted and created again."""
    with upgrading("2.7", tmp_path, {PROTOCOL: "2.7"}) as upgrade:
        upgrade.to("2.8")
        upgrade.to("2.7")
        (broker,) = upgrade.cluster.brokers
        settings = broker.folder / "server.properties"
        lines = settings.read_text().splitlines()
        settings.write_text("\n".join(line for line in lines if not line.startswith(PROTOCOL)))
        upgrade.to("2.8")


def test_3_9_to_4_0(tmp_path: Path) -> None:
    """And its features afterwards, as the upgrade guide says: transactions of version 2, ..."""
    with upgrading("3.9", tmp_path, {}) as upgrade:
        upgrade.to("4.0")
        release = str(find_release("4.0"))
        line = release.rpartition(".")[0]
        words = ["upgrade", "--release-version", line]
        servers = upgrade.cluster.bootstrap_servers
        tool = "org.apache.kafka.tools.FeatureCommand"
        done = run_java_tool(tool, ["--bootstrap-server", servers, *words])
        assert done.returncode == 0, done.stdout + done.stderr
        upgrade.wait_for_records()
