"""The systems and the cases, with the amount of data of each case at full size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

SPARKMIRROR = "sparkmirror"
MM2_DEFAULT = "mm2-default"
MM2_TUNED = "mm2-tuned"
SYSTEMS = (SPARKMIRROR, MM2_DEFAULT, MM2_TUNED)
# Not a system: `latency` also measures records that are read where they were written.
NO_MIRROR = "no-mirror"
# The better of MirrorMaker 2's two figures, default or tuned, which sparkmirror is compared with.
BETTER_MM2 = "the better mm2"

# Which cluster is far.
SOURCE, TARGET = "source", "target"

DATA_PARTITIONS = 8
LATENCY_PARTITIONS = 4
# A copy is measured for at least this long, in every round and for every system.
WINDOW_SECONDS = 10.0
# A shorter copy would be lost in the polling interval.
_LEAST_RECORDS = 1_000
_LEAST_SECONDS = 3.0
_LEAST_TOPICS = 20
# Records per batch of producers that do not linger.
ONE_RECORD = (1.0, 1.0)


@dataclass(frozen=True, slots=True)
class CopyCase:
    """A backlog of equal records that is copied as fast as the system can.

    `records` are enough for a window of full length at about 1.4 times the rate seen so far.
    """

    name: str
    value_bytes: int
    records: int
    compressible: bool
    producer: Mapping[str, str | int]
    # Mean records per batch that the source log must show: (at least, at most).
    records_per_batch: tuple[float, float]
    # Whether the mirror connects to both clusters with TLS.
    tls: bool = False
    partitions: int = DATA_PARTITIONS

    def window_seconds(self, scale: float) -> float:
        """How long a copy is measured, if its data lasts that long."""
        return max(_LEAST_SECONDS, WINDOW_SECONDS * min(1.0, scale))

    def record_count(self, scale: float) -> int:
        """Records of one topic, the same number in every partition."""
        wanted = max(_LEAST_RECORDS, int(self.records * scale))
        return wanted - wanted % self.partitions


@dataclass(frozen=True, slots=True)
class LatencyCase:
    """Records at a steady rate, each timed from `produce` to its arrival at a consumer."""

    name: str
    records_per_second: int
    value_bytes: int
    warm_up_seconds: float
    measured_seconds: float
    rounds_per_visit: int = 4

    def seconds(self, scale: float) -> tuple[float, float]:
        """The lengths of the warm-up and of one measured round, for every system."""
        factor = min(1.0, scale)
        return (
            max(_LEAST_SECONDS, self.warm_up_seconds * factor),
            max(_LEAST_SECONDS, self.measured_seconds * factor),
        )


@dataclass(frozen=True, slots=True)
class ScaleCase:
    """Many partitions with one record each: time to start, then idle.

    The flow also follows this number of `groups`; if there are any, a new topic appears later.
    """

    name: str
    partitions: int
    settle_seconds: float
    idle_seconds: float
    brokers: int = 1  # of each cluster
    groups: int = 0

    def seconds(self, scale: float) -> tuple[float, float]:
        """The lengths of the pause after the start and of the measured idle time."""
        factor = min(1.0, scale)
        return (
            max(_LEAST_SECONDS, self.settle_seconds * factor),
            max(_LEAST_SECONDS, self.idle_seconds * factor),
        )


@dataclass(frozen=True, slots=True)
class StartCase:
    """From the start of the process until the records of one topic are on the target."""

    name: str
    partitions: int
    rounds: int


@dataclass(frozen=True, slots=True)
class RefreshCase:
    """Many topics of one partition, and as many groups: the first full sync of both."""

    name: str
    topics: int

    def topic_count(self, scale: float) -> int:
        """The number of topics, which is also that of groups."""
        return max(_LEAST_TOPICS, int(self.topics * scale))


@dataclass(frozen=True, slots=True)
class WanLine:
    """A copy over a long line: which cluster is far, how long one way takes, and the topic."""

    far: str
    delay_ms: int
    partitions: int
    # Whether the copy is compared with the source; for the other lines it would take too long.
    compares: bool = False

    @property
    def name(self) -> str:
        return f"wan-{self.far}-{self.delay_ms}-{self.partitions}"

    @property
    def is_near(self) -> bool:
        """Whether the line has no delay, so that others are compared with it."""
        return self.delay_ms == 0


@dataclass(frozen=True, slots=True)
class WanCase:
    """One of the clusters is behind a long line: copies of a backlog, and live records.

    All lines of a system are measured with one worker: starting it takes longer than a line.
    """

    name: str
    data: CopyCase
    lines: tuple[WanLine, ...]
    live: LatencyCase
    live_delay_ms: int


Case = CopyCase | LatencyCase | ScaleCase | StartCase | RefreshCase | WanCase

_FULL_BATCHES: dict[str, str | int] = {
    "batch.size": 128 * 1024,
    "batch.num.messages": 100_000,
    "linger.ms": 100,
}

_KILOBYTES = CopyCase(
    "1k-none",
    value_bytes=1024,
    records=7_000_000,
    compressible=False,
    producer={**_FULL_BATCHES, "compression.type": "none"},
    records_per_batch=(100, 130),
)
_COPY_CASES = (
    _KILOBYTES,
    replace(_KILOBYTES, name="1k-tls", records=3_200_000, tls=True),
    CopyCase(
        "100b-lz4",
        value_bytes=100,
        records=90_000_000,
        compressible=True,
        producer={**_FULL_BATCHES, "compression.type": "lz4"},
        records_per_batch=(900, 1400),
    ),
    CopyCase(
        "tiny",
        value_bytes=100,
        records=32_000_000,
        compressible=False,
        producer={"compression.type": "none"},
        records_per_batch=ONE_RECORD,
    ),
)
_LATENCY_CASES = tuple(
    LatencyCase(
        name,
        records_per_second=rate,
        value_bytes=200,
        warm_up_seconds=60.0,
        measured_seconds=10.0,
    )
    for name, rate in (("latency-1000", 1_000), ("latency-20000", 20_000))
)
_SCALE_CASES = tuple(
    ScaleCase(f"scale-{partitions}", partitions, settle_seconds=8.0, idle_seconds=15.0)
    for partitions in (10, 100, 1_000)
)
# Every periodic job runs once within a minute.
_LARGEST = ScaleCase(
    "scale-10000", 10_000, settle_seconds=30.0, idle_seconds=60.0, brokers=3, groups=200
)
_START_CASE = StartCase("start", partitions=8, rounds=5)
_REFRESH_CASE = RefreshCase("refresh", topics=2_000)

# TCP's bytes in flight per connection without tuning: Linux' default for senders.
WINDOW_BYTES = 4 << 20
WAN_PARTITIONS = (4, 32)
WAN_LINES = (
    *(WanLine(SOURCE, 0, partitions) for partitions in WAN_PARTITIONS),
    *(WanLine(SOURCE, 20, partitions) for partitions in WAN_PARTITIONS),
    *(WanLine(SOURCE, 80, partitions, compares=True) for partitions in WAN_PARTITIONS),
    *(WanLine(SOURCE, 200, partitions) for partitions in WAN_PARTITIONS),
    *(WanLine(TARGET, 80, partitions, compares=True) for partitions in WAN_PARTITIONS),
)
WAN_CASE = WanCase(
    "wan",
    data=replace(_KILOBYTES, name="wan", records=5_200_000),
    lines=WAN_LINES,
    live=LatencyCase("wan-live-80", 1_000, 200, 20.0, 10.0, rounds_per_visit=2),
    live_delay_ms=80,
)

_ALL: tuple[Case, ...] = (
    *_COPY_CASES,
    *_LATENCY_CASES,
    *_SCALE_CASES,
    _START_CASE,
    _REFRESH_CASE,
    WAN_CASE,
    _LARGEST,
)
CASES = {case.name: case for case in _ALL}


def parse_cases(text: str) -> list[Case]:
    """Cases in a comma-separated list; `scale` and `latency` mean all cases of that kind."""
    chosen: list[Case] = []
    for word in text.split(","):
        named = [case for name, case in CASES.items() if word in (name, name.split("-")[0])]
        if not named:
            raise ValueError(
                f"unknown case {word!r}; there are {', '.join(CASES)}, latency and scale"
            )
        chosen += [case for case in named if case not in chosen]
    return chosen


def parse_systems(text: str) -> list[str]:
    """Systems named in a comma-separated list."""
    words = text.split(",")
    unknown = [word for word in words if word not in SYSTEMS]
    if unknown:
        raise ValueError(f"unknown system {unknown[0]!r}; there are {', '.join(SYSTEMS)}")
    return words
