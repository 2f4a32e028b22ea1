"""Two clusters of a user: filled, and compared."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from sparkmirror.demo.reading import RecordContent, read_topic
from sparkmirror.embedded import KafkaCluster
from tests.certificates import PASSWORD, Certificates
from tests.clusters import Record, produce, wait_for
from tests.mm2_suite.topics import ends
from tests.secure_cluster import CLIENT_LOGINS

SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Clusters:
    """Two brokers each."""

    source: KafkaCluster
    target: KafkaCluster
    certificates: Certificates

    @property
    def login(self) -> dict[str, str]:
        """E: what its clients need for the listener of `secure_servers`."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": CLIENT_LOGINS["SCRAM-SHA-512"],
            "ssl.truststore.location": str(self.certificates.trust_jks),
            "ssl.truststore.password": PASSWORD,
        }

    @property
    def secure_servers(self) -> tuple[str, str]:
        return self.source.servers_of("SASL_SSL"), self.target.servers_of("SASL_SSL")

    @property
    def servers(self) -> tuple[str, str]:
        return self.source.bootstrap_servers, self.target.bootstrap_servers

    def fill(self, topic: str, partitions: int, count: int) -> None:
        """Write to every partition of a topic of the source."""
        for partition in range(partitions):
            produce(self.source, topic, records(count), partition=partition)

    def wait_copied(self, topic: str, remote: str) -> None:
        """Wait until the target has every record, and see that each is as it was."""
        self.wait_arrived(self.target, topic, remote)

    def wait_arrived(self, cluster: KafkaCluster, topic: str, remote: str) -> None:
        """The same, on whichever cluster."""
        wanted = {at: end for (_, at), end in ends(self.source, [topic]).items()}

        def found() -> dict[int, int]:
            return {at: end for (_, at), end in ends(cluster, [remote]).items()}

        wait_for(
            lambda: found() == wanted,
            within=SECONDS,
            describe=lambda: f"{remote} {wanted}; found {found()}",
        )
        assert contents(cluster, remote) == contents(self.source, topic)


def records(count: int) -> Iterator[Record]:
    # Of today: older ones would soon be deleted.
    now_ms = time.time_ns() // 1_000_000
    for number in range(count):
        headers = (("trace", b"%d" % number), ("empty", None))
        yield Record(b"%d" % number, b"key-%d" % (number % 3), headers, now_ms + number)


def contents(cluster: KafkaCluster, topic: str) -> dict[int, list[RecordContent]]:
    partitions = read_topic(cluster.bootstrap_servers, topic, read_committed=True)
    return {at: [each.content for each in records] for at, records in partitions.items()}
