"""Situations that the page is shown in: what a worker answers to each request.

They begin with the examples that the views' own row classes write, so that the page is tested with
the fields which the worker sends; a situation changes what it is about and leaves the rest.
"""

from __future__ import annotations

import copy
import json
import random
from functools import cache
from typing import Any

from tests.monitoring.views.examples.endpoints import examples

FLOW = "us-east->us-west"
Json = dict[str, Any]


class Situation:
    """The answers of one worker, by endpoint; tests change them while the page looks on."""

    def __init__(self) -> None:
        self.answers: dict[str, Json] = json.loads(_examples())
        self.offsets: list[Json] = [
            {
                "partition": {"cluster": "us-west", "topic": "clickstream-raw", "partition": n},
                "offset": {"offset": 88_120_000 + n},
            }
            for n in range(3)
        ]
        for frame in self.answers.values():
            frame["missing"] = []
            for worker in frame["workers"]:
                worker.update(state="ok", reason="")
        for n, flow in enumerate(self.flows):
            self.answers["overview"]["sparks"][flow["flow"]] = sparks(flow, n)

    @property
    def overview(self) -> Json:
        """The answer of `overview`, which the stream sends as well."""
        return self.answers["overview"]

    @property
    def flows(self) -> list[Json]:
        """The rows of the flows."""
        rows: list[Json] = self.overview["flows"]
        return rows

    @property
    def connectors(self) -> list[Json]:
        """The rows of the connectors."""
        rows: list[Json] = self.answers["connectors"]["rows"]
        return rows

    def connector(self, name: str) -> Json:
        """One connector's row."""
        return next(row for row in self.connectors if row["name"] == name)

    def bump(self, *names: str) -> None:
        """Tell the page, by the stream, that these changed."""
        for name in names:
            self.overview["versions"][name] += 1

    def be_read_only(self) -> None:
        """The caller may only look."""
        for answer in self.answers.values():
            answer["who"] = {"name": "guest", "role": "viewer", "authenticated": True}


@cache
def _examples() -> str:
    return json.dumps(examples())


def sparks(flow: Json, n: int) -> Json:
    """One hour of a flow, a point a minute."""
    chance = random.Random(n)
    rate = flow["bytes_per_second"] or 0
    lag = flow["seconds_behind"] or 0
    minutes = lag / 60
    copied: list[float | None] = []
    behind: list[float | None] = []
    for minute in range(61):
        copied.append(round(rate * (1 + chance.uniform(-0.06, 0.06))))
        begun = minute - (60 - minutes)
        behind.append(round(begun * 60, 1) if begun > 0 and lag > 5 else chance.uniform(0.4, 0.7))
    if n == 0:
        copied[18:20] = behind[18:20] = [None, None]
    return {"bytes_per_second": copied, "seconds_behind": behind}


def problems() -> Situation:
    """One task has failed, one partition is stuck."""
    situation = Situation()
    central = situation.overview["clusters"][2]
    central.update(state="ok", brokers_known=3, brokers_reachable=3, reason="", unknown={})
    situation.flows[1].update(heartbeat_age_seconds=0.6, not_applicable={})
    failed = situation.connector("mm2-msc-us-west-central")["tasks"][2]
    problem = situation.overview["problems"][0]
    failed.update(
        state="FAILED",
        reason=problem["text"],
        remedy=problem["remedy"],
        trace=TRACE,
        worker="sm-worker-3:8083",
    )
    return situation


TRACE = """\
org.apache.kafka.common.errors.RecordTooLargeException
mm2-msc-us-west-central task 2: produce to us-west.clickstream-raw-3 on 'central' (10.3.0.11:9092):
  offsets 88120417 to 88120417 of clickstream-raw-3 (1 record, 1500000 bytes): MESSAGE_TOO_LARGE
  max.message.bytes of us-west.clickstream-raw is 1048588
Traceback (most recent call last):
  File "sparkmirror/spark/copy/copier.py", line 214, in run
    self.producer.check(answer)
  File "sparkmirror/spark/copy/producer.py", line 388, in check
    raise RecordTooLarge(partition, first, last, size)
sparkmirror.errors.RecordTooLarge: clickstream-raw-3 at 88120417: 1500000 bytes"""


def all_right() -> Situation:
    """Nothing is wrong."""
    situation = Situation()
    overview = situation.overview
    overview["verdict"] = {
        "level": "ok",
        "code": "ok",
        "head": "Everything is all right",
        "text": "All 214 partitions are live and at most 0.6 s behind. 12 of 12 tasks are running.",
    }
    overview["problems"] = []
    overview["notes"] = []
    rows = situation.answers["events"]["rows"]
    rows[:] = [row for row in rows if row["level"] in ("ok", "info") and not row["link"]]
    overview["events"] = rows[:5]
    for n, flow in enumerate(situation.flows):
        flow.update(state="live", word="Live", seconds_behind=0.597, records_behind=6656)
        flow["worst"].update(seconds_behind=0.597, records_behind=204)
        flow["sentence"].update(level="ok", head="Live")
        overview["sparks"][flow["flow"]] = sparks(flow, n)
    overview["worst"] = copy.deepcopy(situation.flows[0]["worst"])
    overview["records_behind"] = 19_968
    for each in overview["failover"]:
        each.update(level="ok", head="Ready", text="0.6 s would be lost, 412 records re-read")
    for cluster in overview["clusters"]:
        cluster.update(state="ok", brokers_known=3, brokers_reachable=3, reason="", unknown={})
    situation.flows[1].update(heartbeat_age_seconds=0.6, not_applicable={})
    return situation


# A backlog: 35,000 records/s are written; the target was away for 22 minutes and is back for 6.
# Since then 110,000 records/s are copied, and the lag falls by 2.14 s a second.
WRITTEN, COPIED, RECORD_BYTES = 35_000, 110_000, 825
OUTAGE_SECONDS, BACK_SECONDS = 1320, 360
FALLS = COPIED - WRITTEN


def lag_after(seconds_back: float) -> float:
    """Age of the oldest record not copied, so many seconds after the target came back."""
    return OUTAGE_SECONDS - seconds_back * FALLS / WRITTEN


def catching_up() -> Situation:
    """us-west was away for 22 minutes; the backlog falls."""
    situation = all_right()
    overview, flow = situation.overview, situation.flows[0]
    now: int = overview["now_ms"]
    lag = lag_after(BACK_SECONDS)
    behind = round(lag * WRITTEN)
    left = behind / FALLS
    text = (
        "us-west was away from 02:44 to 03:06. 90.8 MB/s are copied, 28.9 MB/s written: the "
        "backlog falls by 75,000 records/s. Nothing is lost."
    )
    overview["verdict"] = {
        "level": "info",
        "code": "catching up",
        "head": "Catching up: us-east to us-west is done in about 4 min",
        "text": text,
    }
    flow.update(state="catching up", word="Catching up", seconds_behind=lag)
    flow.update(others_seconds_behind=lag, bytes_per_second=float(COPIED * RECORD_BYTES))
    flow.update(records_per_second=float(COPIED), records_behind=behind)
    flow["worst"].update(topic="clickstream", partition=11, seconds_behind=lag)
    flow["worst"].update(records_behind=178_214)
    flow["latency"].update(p50_ms=101.0, p99_ms=388.0)
    head = "Catching up, done in about 4 min (03:17)"
    flow["sentence"] = {"level": "info", "code": "catching up", "head": head, "text": text}
    flow["catch_up"] = {
        "state": "about",
        "text": "",
        "seconds": left,
        "at_ms": round(now + left * 1000),
        "since_ms": None,
        "change_per_second": float(-FALLS),
    }
    overview["worst"] = copy.deepcopy(flow["worst"])
    overview.update(records_behind=behind + 13_312, bytes_per_second=114_700_000.0)
    situation.answers["flow"]["flow"] = flow
    for n, row in enumerate(situation.answers["flow"]["slowest"]):
        row.update(state="catching up", problem="", seconds_behind=lag - n, remedy=None)
        row["records_behind"] = 178_214 - 3_107 * n
        row["position"] = row["end_offset"] - row["records_behind"]
    situation.answers["history"] = {**situation.answers["history"], **catching_up_history(now)}
    overview["sparks"][FLOW] = {
        "bytes_per_second": situation.answers["history"]["series"]["bytes_per_second"][::4],
        "seconds_behind": situation.answers["history"]["series"]["seconds_behind"][::4],
    }
    return situation


def catching_up_history(now: int) -> Json:
    """The last hour of that story."""
    chance = random.Random(4)
    back = now - BACK_SECONDS * 1000
    gone = back - OUTAGE_SECONDS * 1000
    times = [now - 3_600_000 + 15_000 * n for n in range(241)]
    series: dict[str, list[float | None]] = {name: [] for name in SERIES}
    for at in times:
        is_out, is_back = gone <= at < back, at >= back
        noise = 1 + chance.uniform(-0.04, 0.04)
        lag = 0.6 * noise
        if is_out:
            lag = (at - gone) / 1000
        elif is_back:
            lag = lag_after((at - back) / 1000)
        copied = 0 if is_out else (COPIED if is_back else WRITTEN) * noise
        written = WRITTEN * (1 + chance.uniform(-0.03, 0.03))
        values: dict[str, float | None] = {
            "bytes_per_second": copied * RECORD_BYTES,
            "records_per_second": copied,
            "written_bytes_per_second": written * RECORD_BYTES,
            "written_records_per_second": written,
            "seconds_behind": lag,
            "others_seconds_behind": lag * 0.98,
            "records_behind": lag * WRITTEN,
            "latency_p50_ms": None if is_out else (101 if is_back else 71) * noise,
            "latency_p99_ms": None if is_out else (388 if is_back else 188) * noise,
        }
        for name, value in values.items():
            series[name].append(value)
    return {
        "times_ms": times,
        "series": series,
        "gaps": [],
        "marks": [
            {"time_ms": gone, "text": "us-west unreachable", "event_id": "1"},
            {"time_ms": back, "text": "us-west back", "event_id": "2"},
        ],
    }


SERIES = (
    *("bytes_per_second", "records_per_second", "written_bytes_per_second"),
    *("written_records_per_second", "seconds_behind", "others_seconds_behind", "records_behind"),
    *("latency_p50_ms", "latency_p99_ms"),
)


def many_topics(count: int = 2000) -> Situation:
    """So many topics that no list may hold all of them."""
    situation = problems()
    rows = situation.answers["topics"]["rows"]
    pattern = next(row for row in rows if row["state"] == "live")
    for n in range(count - len(rows)):
        row = copy.deepcopy(pattern)
        row.update(topic=f"tenant-{n:04}.orders", target_topic=f"us-east.tenant-{n:04}.orders")
        rows.append(row)
    return situation


def both_ways() -> Situation:
    """Two clusters that mirror each other."""
    situation = all_right()
    overview = situation.overview
    there, back = situation.flows[0], copy.deepcopy(situation.flows[0])
    back.update(flow="us-west->us-east", source="us-west", target="us-east")
    overview["flows"] = [there, back]
    overview["clusters"] = overview["clusters"][:2]
    overview["sparks"]["us-west->us-east"] = sparks(back, 5)
    return situation


def nothing_configured() -> Situation:
    """A worker without connectors."""
    situation = Situation()
    situation.overview.update(flows=[], problems=[], notes=[], events=[], clusters=[], failover=[])
    situation.overview["verdict"] = {
        "level": "info",
        "code": "empty",
        "head": "No flow yet",
        "text": "This worker waits for connectors. Send it the files of a source cluster: "
        "`sparkmirror deploy us-east --dir mm2 --url http://sm-worker-2:8083`",
    }
    return situation
