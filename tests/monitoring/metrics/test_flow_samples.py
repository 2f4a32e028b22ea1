"""Flows, topics and partitions as samples, in as much detail as their number allows."""

from __future__ import annotations

import math
import time

import pytest

from sparkmirror.config.worker.metrics_keys import PerPartition
from sparkmirror.monitoring.lag.partition_lag import PartitionState
from sparkmirror.monitoring.metrics.detail import MOST_SERIES
from sparkmirror.monitoring.metrics.metrics_collector import MetricsCollector
from sparkmirror.monitoring.metrics.parts.flow_samples import FlowSamples
from sparkmirror.spark.figures import Window
from tests.monitoring.metrics.expositions import Exposition
from tests.monitoring.metrics.lags import StubLag, flow_lag, partition_lag

SOURCE = "kafka_connect_mirror_mirrorsourceconnector_"
LAG = "kafka_consumer_fetch_manager_records_lag"
FLOW_LABELS = {"source": "a", "target": "b", "connector": "a->b.src"}


def scrape(lag: StubLag, wanted: PerPartition = PerPartition.AUTO) -> Exposition:
    return Exposition(MetricsCollector({"lag": FlowSamples(lag, wanted)}).text().decode())


def test_lines_are_those_of_strimzis_rules_byte_for_byte() -> None:
    window = Window(34.0, 10.0, 50.0, 60.0, 2)
    text = scrape(StubLag([partition_lag("ho-t1", age=window, records=428)])).text
    labels = '{partition="0",source="a",target="b",topic="a.ho-t1"}'
    assert f"{SOURCE}record_count{labels} 428.0\n" in text
    assert f"{SOURCE}record_age_ms{labels} 34.0\n" in text
    assert f"{SOURCE}record_age_ms_avg{labels} 30.0\n" in text
    assert f"{SOURCE}record_age_ms_min{labels} 10.0\n" in text
    assert f"{SOURCE}record_age_ms_max{labels} 50.0\n" in text
    assert f"{SOURCE}replication_latency_ms_avg{labels} NaN\n" in text
    client = r'"\"a->b|a->b.src-0|replication-consumer\""'
    of = r"kafka.consumer<type=consumer-fetch-manager-metrics, client-id=" + client[1:-1]
    assert (
        f'{LAG}{{_objectname="{of}, topic=ho-t1, partition=0><>records-lag",'
        f'clientid={client},partition="0",topic="ho-t1"}} 5.0\n'
    ) in text
    sent = r'{clientid="\"connector-producer-a->b.src-0\"",topic="a.ho-t1"}'
    assert f"kafka_producer_topic_record_send_total{sent} 428.0\n" in text


def test_what_is_not_known_has_no_sample() -> None:
    lag = partition_lag(records_behind=None, bytes_behind=None, seconds_behind=None)
    flow = flow_lag(records_behind=None, bytes_behind=None, seconds_behind=None, unknown=1)
    found = scrape(StubLag([lag], [flow]))
    unknown = {LAG, "sparkmirror_lag_seconds", "sparkmirror_lag_records", "sparkmirror_lag_bytes"}
    unknown |= {f"sparkmirror_flow_lag_{what}" for what in ("seconds", "records", "bytes")}
    unknown |= {"sparkmirror_seconds_until_loss", "sparkmirror_flow_seconds_until_loss"}
    assert found.names & unknown == set()
    assert found.value("sparkmirror_flow_unknown_partitions", **FLOW_LABELS) == 1


def test_a_flow_has_its_sums_states_and_latencies() -> None:
    flow = flow_lag(
        states={PartitionState.CATCHING_UP: 2},
        seconds_until_loss=60.0,
        lost_records=3,
        slow={"format": 7},
    )
    found = scrape(StubLag([], [flow]))
    assert found.value("sparkmirror_flow_partitions", state="catching_up") == 2
    assert found.value("sparkmirror_flow_partitions", state="stuck") == 0
    assert found.value("sparkmirror_flow_seconds_until_loss") == 60
    assert found.value("sparkmirror_flow_lost_records_total", **FLOW_LABELS) == 3
    assert found.value("sparkmirror_flow_skipped_records_total", **FLOW_LABELS) == 0
    assert found.value("sparkmirror_flow_slow_batches_total", reason="format") == 7
    name = "sparkmirror_flow_replication_latency_seconds"
    assert found.value(f"{name}_bucket", le="0.005") == 1
    assert found.value(f"{name}_bucket", le="0.01") == 2
    assert found.value(f"{name}_bucket", le="+Inf") == found.value(f"{name}_count") == 16
    assert found.value(f"{name}_sum") == 1.5


def test_stuck_partitions_say_why_and_are_few() -> None:
    lags = [
        partition_lag("t", at, state=PartitionState.STUCK, problem="denied " * 100)
        for at in range(150)
    ]
    found = scrape(StubLag(lags)).samples("sparkmirror_partition_stuck")
    assert len(found) == 100
    assert all(len(each.labels["problem"]) == 200 for each in found)


def test_many_partitions_become_topics() -> None:
    lags = [partition_lag("t", at, seconds_behind=float(at)) for at in range(MOST_SERIES + 1)]
    found = scrape(StubLag(lags))
    assert found.value("sparkmirror_metrics_level", level="topic") == 1
    (count,) = found.samples(f"{SOURCE}record_count")
    assert (dict(count.labels), count.value) == (
        {"source": "a", "target": "b", "topic": "a.t"},
        10 * (MOST_SERIES + 1),
    )
    assert found.value("sparkmirror_lag_seconds", topic="t") == MOST_SERIES
    assert found.value(LAG, topic="t") == 5 * (MOST_SERIES + 1)


def test_many_topics_become_flows() -> None:
    lags = [partition_lag(f"t{at}", 0) for at in range(MOST_SERIES + 1)]
    found = scrape(StubLag(lags))
    assert found.value("sparkmirror_metrics_level", level="flow") == 1
    (count,) = found.samples(f"{SOURCE}record_count")
    assert (dict(count.labels), count.value) == (
        {"source": "a", "target": "b"},
        10 * (MOST_SERIES + 1),
    )


@pytest.mark.parametrize(
    ("wanted", "series"),
    [(PerPartition.AUTO, 1), (PerPartition.NEVER, 1), (PerPartition.ALWAYS, 10_000)],
)
def test_ten_thousand_partitions_are_scraped_within_a_second(
    wanted: PerPartition, series: int
) -> None:
    lags = [partition_lag("t", at) for at in range(10_000)]
    collector = MetricsCollector({"lag": FlowSamples(StubLag(lags), wanted)})
    began = time.process_time()
    text = collector.text()
    took = time.process_time() - began
    assert text.count(f"\n{SOURCE}record_count{{".encode()) == series
    if wanted is PerPartition.AUTO:
        assert took < 1.0, took


def test_never_keeps_topics_of_few_partitions() -> None:
    found = scrape(StubLag([partition_lag("t", 0), partition_lag("t", 1)]), PerPartition.NEVER)
    (count,) = found.samples(f"{SOURCE}record_count")
    assert "partition" not in count.labels


def test_the_first_rate_is_not_known() -> None:
    found = scrape(StubLag([partition_lag()]))
    assert math.isnan(found.value(f"{SOURCE}record_rate"))


def test_names_of_others_cannot_break_the_format() -> None:
    lag = partition_lag('t"\\\n{}', state=PartitionState.STUCK, problem='a "b"\nc\\')
    found = scrape(StubLag([lag]))
    (stuck,) = found.samples("sparkmirror_partition_stuck")
    assert (stuck.labels["topic"], stuck.labels["problem"]) == ('t"\\\n{}', 'a "b"\nc\\')
