"""Which version is chosen, and the error for brokers that have none in common with us."""

from __future__ import annotations

import pytest
from kafka.protocol.broker_version_data import BROKER_API_VERSIONS

from sparkmirror.errors import UnsupportedVersionError
from sparkmirror.wire.protocol import api_versions
from sparkmirror.wire.protocol.api_versions import (
    FETCH,
    METADATA,
    OFFSET_FOR_LEADER_EPOCH,
    OLDEST_RELEASE,
    PRODUCE,
    Api,
    ApiVersions,
    infer_release,
)

APIS = [each for each in vars(api_versions).values() if isinstance(each, Api)]
# Recorded by kafka-python from real brokers.
SUPPORTED = sorted(release for release in BROKER_API_VERSIONS if release >= OLDEST_RELEASE)
TOO_OLD = sorted(release for release in BROKER_API_VERSIONS if (0, 10) < release < OLDEST_RELEASE)


def of_release(release: tuple[int, ...]) -> ApiVersions:
    return ApiVersions(BROKER_API_VERSIONS[release])


@pytest.mark.parametrize("release", SUPPORTED)
def test_supported_releases_speak_everything_that_we_need(release: tuple[int, ...]) -> None:
    versions = of_release(release)
    versions.require()
    lacking = {api.name for api in APIS if not versions.speaks(api)}
    assert lacking == ({OFFSET_FOR_LEADER_EPOCH.name} if release < (2, 3) else set())


@pytest.mark.parametrize(
    ("release", "fetch", "produce"),
    [((2, 1), 10, 7), ((2, 3), 11, 7), ((2, 4), 11, 8), ((2, 7), 12, 8), ((3, 1), 13, 8)],
)
def test_the_newest_common_version_is_chosen(
    release: tuple[int, ...], fetch: int, produce: int
) -> None:
    versions = of_release(release)
    assert (versions.choose(FETCH), versions.choose(PRODUCE)) == (fetch, produce)


@pytest.mark.parametrize("release", TOO_OLD)
def test_a_broker_that_is_too_old_is_named_with_its_release(release: tuple[int, ...]) -> None:
    with pytest.raises(
        UnsupportedVersionError, match=r"the oldest supported release is 2\.1"
    ) as got:
        of_release(release).require()
    assert f"this is Kafka {'.'.join(map(str, release))} or behaves like it" in str(got.value)


def test_a_broker_that_is_too_new_asks_for_a_newer_sparkmirror() -> None:
    versions = ApiVersions({METADATA.key: (7, 20), FETCH.key: (10, 20), PRODUCE.key: (99, 100)})
    with pytest.raises(UnsupportedVersionError, match="install a newer sparkmirror") as got:
        versions.require()
    assert "versions 99 to 100 of Produce requests" in str(got.value)


def test_a_request_that_is_not_known_at_all() -> None:
    versions = of_release((2, 1))
    del versions[FETCH.key]
    with pytest.raises(UnsupportedVersionError, match="does not speak Fetch requests at all"):
        versions.choose(FETCH)


@pytest.mark.parametrize("release", [(2, 1), (2, 8), (3, 6)])
def test_the_release_is_inferred(release: tuple[int, ...]) -> None:
    assert infer_release(of_release(release)) == release
