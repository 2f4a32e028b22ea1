"""The configuration files of the systems."""

from __future__ import annotations

from bench.cases import MM2_DEFAULT, MM2_TUNED, SPARKMIRROR
from bench.systems import Flow, flow_properties
from bench.workers import CopyName, Route, connector_config

FLOW = Flow("a-1", "127.0.0.1:1", "127.0.0.1:2", "bench-x-.*")


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


NAME = CopyName("a-1", "bench-x")
ROUTE = Route("127.0.0.1:1", "127.0.0.1:2", {"security.protocol": "SSL"})


def test_connectors_of_sparkmirror_and_mm2_by_default_differ_in_the_number_of_tasks_only() -> None:
    ours = connector_config(SPARKMIRROR, NAME, ROUTE)
    assert ours | {"tasks.max": "4"} == connector_config(MM2_DEFAULT, NAME, ROUTE)
    assert "tasks.max" not in ours


def test_tuning_of_a_connector_is_that_of_a_file() -> None:
    plain = connector_config(MM2_DEFAULT, NAME, ROUTE)
    tuned = connector_config(MM2_TUNED, NAME, ROUTE)
    assert plain.items() <= tuned.items()
    assert len(tuned) == len(plain) + 7
    assert tuned["source.consumer.max.poll.records"] == "10000"
    assert tuned["producer.override.acks"] == "1"


def test_records_of_a_connector_go_to_the_target_with_its_security() -> None:
    config = connector_config(SPARKMIRROR, NAME, ROUTE)
    for prefix in ("source.cluster.", "target.cluster.", "producer.override."):
        assert config[f"{prefix}security.protocol"] == "SSL"
    assert config["producer.override.bootstrap.servers"] == "127.0.0.1:2"
