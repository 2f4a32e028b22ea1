"""The configuration files of the systems."""

from __future__ import annotations

from bench.cases import MM2_DEFAULT, MM2_TUNED, SPARKMIRROR
from bench.systems import Flow, flow_properties

FLOW = Flow("a-1", "127.0.0.1:1", "127.0.0.1:2", "bench-x-.*", refresh_seconds=1)


def test_sparkmirror_and_mm2_by_default_differ_in_the_number_of_tasks_only() -> None:
    properties = flow_properties(SPARKMIRROR, FLOW)
    assert properties | {"tasks.max": "4"} == flow_properties(MM2_DEFAULT, FLOW)
    assert properties["a-1->target.topics"] == "bench-x-.*"
    assert "tasks.max" not in properties


def test_tuning_is_seven_keys_more_and_changes_none() -> None:
    plain = flow_properties(MM2_DEFAULT, FLOW)
    tuned = flow_properties(MM2_TUNED, FLOW)
    assert plain.items() <= tuned.items()
    assert len(tuned) == len(plain) + 7
    assert tuned["a-1.consumer.max.poll.records"] == "10000"


def test_topics_are_refreshed_as_by_default_unless_asked_for() -> None:
    flow = Flow("a", "127.0.0.1:1", "127.0.0.1:2", "t")
    assert "refresh.topics.interval.seconds" not in flow_properties(MM2_DEFAULT, flow)
    assert flow_properties(MM2_DEFAULT, FLOW)["refresh.topics.interval.seconds"] == "1"
