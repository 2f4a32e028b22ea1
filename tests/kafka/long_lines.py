"""Clusters whose mirror comes over a long line; the test itself reaches them without it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.long_lines.long_line import LINE, LongLine
from tests.clusters import start_cluster


class Far(NamedTuple):
    """A cluster and the line to it."""

    cluster: KafkaCluster
    line: LongLine


@contextmanager
def far_cluster(name: str, folder: Path) -> Iterator[Far]:
    """A cluster of one broker with a second listener, which is reached over a line."""
    with (
        LongLine(folder) as line,
        start_cluster(
            name, listeners={LINE: "PLAINTEXT"}, advertised_ports={LINE: line.port}
        ) as cluster,
    ):
        line.connect(cluster)
        yield Far(cluster, line)


def over_lines(*, source: LongLine | None = None, target: LongLine | None = None) -> dict[str, str]:
    """Settings of a mirror that reaches its clusters over lines."""
    lines = {"SOURCE.bootstrap.servers": source, "target.bootstrap.servers": target}
    return {key: line.address for key, line in lines.items() if line is not None}
