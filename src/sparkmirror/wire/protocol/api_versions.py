"""Which version of each request a broker gets: the newest that both it and this package speak.

Runs on: executor and worker. Pure. Every connection asks its broker first (ApiVersions, KIP-35), so
a cluster in the middle of a rolling upgrade, or a broker that comes back with another release,
needs no setting. The table is the one place that lists the versions encoded and decoded here;
kafka-python negotiates its own admin requests the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kafka.protocol.broker_version_data import infer_broker_version_from_api_versions

from sparkmirror.errors import UnsupportedVersionError

# KIP-896: what Kafka's own 4.x clients support, too.
OLDEST_RELEASE = (2, 1)
NEVER = 1 << 15


class Api(NamedTuple):
    """A request: its key, the versions of it that we speak, and the first with tagged fields."""

    name: str
    key: int
    oldest: int
    newest: int
    first_flexible: int = NEVER


# The comments name the first release whose brokers speak the oldest and the newest version.
PRODUCE = Api("Produce", 0, 7, 8)  # 2.1: zstd (KIP-110); 2.4: errors of single records (KIP-467)
# 2.1: zstd; 2.3: racks (KIP-392); 2.7: diverging epochs (KIP-595); 3.1: topic ids (KIP-516)
FETCH = Api("Fetch", 1, 10, 13, first_flexible=12)
LIST_OFFSETS = Api("ListOffsets", 2, 4, 4)  # 2.1
METADATA = Api("Metadata", 3, 7, 12, first_flexible=9)  # 2.1: leader epochs; 2.8: topic ids
FIND_COORDINATOR = Api("FindCoordinator", 10, 2, 2)  # 2.0
JOIN_GROUP = Api("JoinGroup", 11, 3, 4)  # 2.0; 2.2: member ids are given first (KIP-394)
HEARTBEAT = Api("Heartbeat", 12, 2, 2)  # 2.0
LEAVE_GROUP = Api("LeaveGroup", 13, 2, 2)  # 2.0
SYNC_GROUP = Api("SyncGroup", 14, 2, 2)  # 2.0
SASL_HANDSHAKE = Api("SaslHandshake", 17, 1, 1)  # 1.0
INIT_PRODUCER_ID = Api("InitProducerId", 22, 1, 1)  # 2.0
# 2.3: for everyone who may describe the topic; before, for brokers only.
OFFSET_FOR_LEADER_EPOCH = Api("OffsetForLeaderEpoch", 23, 3, 3)
ADD_PARTITIONS_TO_TXN = Api("AddPartitionsToTxn", 24, 1, 1)  # 2.0
END_TXN = Api("EndTxn", 26, 1, 1)  # 2.0
SASL_AUTHENTICATE = Api("SaslAuthenticate", 36, 0, 1)  # 1.0; 2.2: length of a session (KIP-368)

# A mirror cannot work with a broker that lacks one of these.
NEEDED = (METADATA, FETCH, PRODUCE)


class ApiVersions(dict[int, tuple[int, int]]):
    """What one broker speaks: {API key: (oldest version, newest version)}."""

    def speaks(self, api: Api) -> bool:
        """Whether the broker and we have a version in common."""
        oldest, newest = self.get(api.key, (0, -1))
        return max(oldest, api.oldest) <= min(newest, api.newest)

    def choose(self, api: Api) -> int:
        """The newest version in common.

        Raises:
            UnsupportedVersionError: there is none.
        """
        if not self.speaks(api):
            raise UnsupportedVersionError(f"{self._lack(api)}; {self._remedy(api)}")
        return min(self[api.key][1], api.newest)

    def require(self) -> None:
        """Reject a broker that a mirror cannot work with.

        Raises:
            UnsupportedVersionError: names its release, the oldest supported one, and what is
                missing.
        """
        for api in NEEDED:
            self.choose(api)

    def _lack(self, api: Api) -> str:
        if api.key not in self:
            return f"the broker does not speak {api.name} requests at all"
        oldest, newest = self[api.key]
        return (
            f"the broker speaks versions {oldest} to {newest} of {api.name} requests, "
            f"sparkmirror versions {api.oldest} to {api.newest}"
        )

    def _remedy(self, api: Api) -> str:
        if self.get(api.key, (0, -1))[0] > api.newest:
            return "the broker is newer than this sparkmirror: install a newer sparkmirror"
        release = infer_release(self)
        return describe_too_old(release) if release < OLDEST_RELEASE else "use another broker"


def infer_release(versions: Mapping[int, tuple[int, int]]) -> tuple[int, ...]:
    """The release of Kafka that speaks these versions, such as (2, 8)."""
    return tuple(infer_broker_version_from_api_versions(versions))


def release_name(release: tuple[int, ...]) -> str:
    """As people write it: 2.8."""
    return ".".join(map(str, release))


def describe_too_old(release: tuple[int, ...]) -> str:
    """What is wrong with such a broker, and what to do."""
    return (
        f"this is Kafka {release_name(release)} or behaves like it, and the oldest supported "
        f"release is {release_name(OLDEST_RELEASE)}: upgrade the brokers first"
    )
