"""Releases with KRaft: each beside a broker of the newest, mirrored both ways."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kafka.releases.checks import ReleaseChecks
from tests.kafka.releases.scene import Scene, mirrored

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture(scope="module", params=["3.3", "3.9", "4.0", "4.3"])
def scene(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    """The clusters of one release, shared by all tests."""
    with mirrored(request.param, tmp_path_factory.mktemp("mirror")) as scene:
        yield scene


class TestKRaftReleases(ReleaseChecks):
    """One set of clusters for each release."""
