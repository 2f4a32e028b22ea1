"""The brokers of this folder, and one mirror per policy for most of its tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clusters import start_cluster
from tests.mm2_suite.worlds import POLICIES, Clusters, World, make_world


@pytest.fixture(scope="package")
def clusters() -> Iterator[Clusters]:
    """Both clusters, started side by side."""
    primary, backup = start_cluster("primary"), start_cluster("backup")
    try:
        primary.launch()
        backup.launch()
        primary.wait_ready()
        backup.wait_ready()
        yield Clusters(primary, backup)
    finally:
        primary.stop()
        backup.stop()


@pytest.fixture(scope="package", params=POLICIES)
def world(
    request: pytest.FixtureRequest, clusters: Clusters, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """A running mirror; it must stop in an orderly way after all tests that use it."""
    made = make_world(tmp_path_factory.mktemp(request.param), clusters, request.param)
    made.mirror.start()
    try:
        yield made
        made.mirror.stop()
    finally:
        made.mirror.kill()
