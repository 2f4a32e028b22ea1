"""Kafka releases that can run here: their artifacts, and whether they need ZooKeeper."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sparkmirror.errors import ConfigError

KAFKA_VERSION = "4.3.1"
# The latest known release of each line; users may also name another full version.
LATEST = (
    "2.1.1", "2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.3", "2.7.2", "2.8.2",
    "3.0.2", "3.1.2", "3.2.3", "3.3.2", "3.4.1", "3.5.2", "3.6.2", "3.7.2", "3.8.1", "3.9.1",
    "4.0.1", "4.1.1", "4.2.0", KAFKA_VERSION,
)  # fmt: skip
# The ZooKeeper of older brokers (3.4) does not find its server on Java 14 and later.
ZOOKEEPER_FOR_JAVA_17 = ("org.apache.zookeeper", "zookeeper", "3.5.9")
# Kafka logs through SLF4J 1.7 and leaves the backend to its tarball.
LOG4J2_BACKEND = ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4")
RELOAD4J_BACKEND = ("org.slf4j", "slf4j-reload4j", "1.7.36")
LOG4J1_BACKEND = ("org.slf4j", "slf4j-log4j12", "1.7.25")
BACKENDS = {2: LOG4J1_BACKEND, 3: RELOAD4J_BACKEND, 4: LOG4J2_BACKEND}
COMPLETE = ("kafka-tools", "connect-json", "connect-mirror", "connect-mirror-client")

Coordinates = tuple[str, str, str]


@dataclass(frozen=True, order=True, slots=True)
class Release:
    """One version of Kafka."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    @property
    def needs_zookeeper(self) -> bool:
        """KRaft is ready for production since 3.3 (KIP-833)."""
        return (self.major, self.minor) < (3, 3)

    @property
    def logs_with_log4j1(self) -> bool:
        return self.major < 4

    @property
    def artifacts(self) -> list[Coordinates]:
        """The artifacts to download, besides their dependencies.

        The newest release includes MirrorMaker 2, Connect and the tools, all others only brokers,
        because some of their other parts were not published.
        """
        line = (self.major, self.minor)
        names = ["kafka_2.13" if line >= (2, 4) else "kafka_2.12"]
        names += COMPLETE if str(self) == KAFKA_VERSION else ()
        found = [("org.apache.kafka", name, str(self)) for name in names]
        found += [ZOOKEEPER_FOR_JAVA_17] if line < (2, 4) else []
        return [*found, BACKENDS[self.major]]


OLDEST = Release(2, 1, 0)


def find_release(text: str) -> Release:
    """Find the release that a user names: 2.8 or 2.8.1.

    Raises:
        ConfigError: it does not exist, or is too old.
    """
    known = {latest.rpartition(".")[0]: latest for latest in LATEST}
    match = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", known.get(text, text), re.ASCII)
    release = Release(*map(int, match.groups())) if match else None
    if release is not None and f"{release.major}.{release.minor}" in known:
        return release
    reason = "unknown Kafka release"
    if release is not None and release < OLDEST:
        oldest = f"{OLDEST.major}.{OLDEST.minor}"
        reason = f"older than {oldest}, the oldest release that sparkmirror mirrors"
    allowed = f"use one of {', '.join(known)}, or a release of one of these, such as {LATEST[0]}"
    raise ConfigError("version", text, reason, allowed)
