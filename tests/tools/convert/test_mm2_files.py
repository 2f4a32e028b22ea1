"""The mm2 file: what it has, and that this program takes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.config.mm2 import MirrorMakerConfig, load_mm2
from tests.tools.convert.resources import SET_UP_B, V1, Json, Pod, changed, notes_of, run

FLOW = "source->target."


def load(text: str, folder: Path) -> MirrorMakerConfig:
    """The file as the pod reads it."""
    pod = Pod(folder, run(text))
    return load_mm2(pod.at("/etc/sparkmirror/mm2.properties"))


def lines_of(text: str, prefix: str = FLOW) -> list[str]:
    lines = run(text).files["mm2.properties"].splitlines()
    return [line.removeprefix(prefix) for line in lines if line.startswith(prefix)]


def test_set_up_b() -> None:
    done = run(SET_UP_B)
    assert sorted(done.files) == ["kubernetes.yaml", "mm2.properties"]
    assert (
        done.files["mm2.properties"]
        == """\
# Made by `sparkmirror convert` from the KafkaMirrorMaker2 mirror.
# Paths are those of the pod of kubernetes.yaml, which mounts the Secrets that the resource names.

# Clusters
clusters=source, target

# Cluster source
source.bootstrap.servers=source.example.com:443
source.security.protocol=SSL
source.ssl.truststore.type=PEM
source.ssl.truststore.location=/etc/sparkmirror/secrets/source-ca/ca.crt

# Cluster target
target.bootstrap.servers=kafka1:9092,kafka2:9093,kafka3:9094
target.security.protocol=PLAINTEXT

# Heartbeats only where the resource has them
emit.heartbeats.enabled=false

# Flow source->target
source->target.enabled=true
source->target.emit.checkpoints.enabled=false
source->target.replication.factor=1
source->target.offset-syncs.topic.replication.factor=1
source->target.sync.topic.acls.enabled=false
source->target.topics=orders
"""
    )
    [note] = done.not_carried
    assert note.path == "spec.clusters[1]"
    assert "mirrormaker2-cluster-offsets are not read" in note.reason
    assert note.instead == "use --format connectors to continue where Strimzi stopped"


def test_set_up_b_is_what_the_program_reads(tmp_path: Path) -> None:
    config = load(SET_UP_B, tmp_path)
    assert config.warnings == ()
    assert config.heartbeats == ()
    [flow] = config.flows
    assert str(flow.name) == "source->target"
    source = flow.source
    assert source.topics == ("orders",)
    assert source.replication_factor == source.offset_syncs_replication_factor == 1
    assert source.sync_topic_acls_enabled is False
    assert flow.checkpoint.emit_checkpoints_enabled is False
    assert source.source_client.security["security.protocol"] == "SSL"
    trusted = str(tmp_path / "etc/sparkmirror/secrets/source-ca/ca.crt")
    assert source.source_client.security["ssl.truststore.location"] == trusted
    assert source.target_client.bootstrap_servers == ("kafka1:9092", "kafka2:9093", "kafka3:9094")


def test_v1_is_what_the_program_reads(tmp_path: Path) -> None:
    config = load(V1, tmp_path)
    assert [str(flow.name) for flow in config.flows] == ["eu->backup", "us->backup"]
    eu, us = config.flows
    assert eu.source.topics == ("orders", "payments.*")
    assert eu.source.tasks_max == 4
    assert eu.source.replication_factor == -1
    assert eu.checkpoint.groups == ("app-.*",)
    assert eu.checkpoint.sync_group_offsets_enabled is True
    assert us.checkpoint.emit_checkpoints_enabled is False
    assert eu.worker.offset_flush_interval_ms == us.worker.offset_flush_interval_ms == 10000
    assert eu.worker.config_storage_replication_factor == -1
    # Each flow has its own group and topics.
    assert (eu.worker.group_id, us.worker.group_id) == ("eu-mm2", "us-mm2")
    assert eu.worker.offset_storage_topic == "mm2-offsets.eu.internal"
    assert config.heartbeats == ()
    assert config.warnings == ()


def test_v1_lists_the_group_and_topics_that_a_file_of_flows_does_not_share() -> None:
    notes = notes_of(run(V1))
    assert "my-offsets are not read" in notes["spec.target.offsetStorageTopic"]
    assert notes["spec.target.groupId"] == "each flow has its own group.id"
    assert "spec.target.configStorageTopic" in notes
    assert "spec.target.statusStorageTopic" in notes
    assert "one of the 2 pods copies" in notes["spec.replicas"]


@pytest.mark.parametrize("kind", ["checkpoint", "heartbeat"])
def test_a_connector_that_is_there_runs(kind: str, tmp_path: Path) -> None:
    changes: dict[str, Json] = {f"spec__mirrors__0__{kind}Connector": {}}
    config = load(changed(SET_UP_B, **changes), tmp_path)
    [flow] = config.flows
    assert flow.checkpoint.emit_checkpoints_enabled is (kind == "checkpoint")
    pairs = [str(each.flow) for each in config.heartbeats]
    assert pairs == (["source->target"] if kind == "heartbeat" else [])


@pytest.mark.parametrize("stopped", [{"state": "stopped"}, {"state": "paused"}, {"pause": True}])
@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("source", "enabled=false"),
        ("checkpoint", "emit.checkpoints.enabled=false"),
        ("heartbeat", None),
    ],
)
def test_a_connector_that_does_not_run_is_switched_off(
    kind: str, line: str | None, stopped: dict[str, Json]
) -> None:
    every: dict[str, Json] = {
        f"spec__mirrors__0__{each}Connector": {"config": {}}
        for each in ("source", "checkpoint", "heartbeat")
    }
    every[f"spec__mirrors__0__{kind}Connector"] = stopped
    text = changed(SET_UP_B, **every)
    lines = lines_of(text)
    [field] = stopped
    reason = "the connector is written, but disabled"
    assert notes_of(run(text))[f"spec.mirrors[0].{kind}Connector.{field}"] == reason
    if line is None:
        assert "emit.heartbeats.enabled=true" not in lines
    else:
        assert line in lines


def test_a_mirror_without_a_source_connector_is_listed() -> None:
    text = changed(
        SET_UP_B,
        spec__mirrors__0__sourceConnector=None,
        spec__mirrors__0__checkpointConnector={},
    )
    assert "enabled=false" in lines_of(text)
    notes = notes_of(run(text))
    assert "has no sourceConnector" in notes["spec.mirrors[0]"]
    assert "No source->target replication flows." in notes["spec"]


# -- three connectors, one flow --------------------------------------------------------------------


def with_configs(**configs: Json) -> str:
    changes: dict[str, Json] = {
        f"spec__mirrors__0__{kind}Connector": {"config": config} for kind, config in configs.items()
    }
    return changed(SET_UP_B, **changes)


def test_a_key_of_one_connector_is_the_flows() -> None:
    text = with_configs(
        source={"offset.lag.max": 7},
        checkpoint={"emit.checkpoints.interval.seconds": 5},
        heartbeat={"emit.heartbeats.interval.seconds": 9},
    )
    assert set(lines_of(text)) >= {
        "offset.lag.max=7",
        "emit.checkpoints.interval.seconds=5",
        "emit.heartbeats.interval.seconds=9",
    }
    assert [path for path in notes_of(run(text)) if ".config." in path] == []


def test_a_key_that_the_connector_does_not_read_is_not_given_to_others() -> None:
    text = with_configs(source={}, checkpoint={"sync.topic.acls.enabled": False})
    assert "sync.topic.acls.enabled=false" not in lines_of(text)
    path = "spec.mirrors[0].checkpointConnector.config.sync.topic.acls.enabled"
    assert "does not read it" in notes_of(run(text))[path]


def test_a_key_that_differs_is_listed() -> None:
    policy = "replication.policy.separator"
    text = with_configs(source={policy: "-"}, checkpoint={policy: "_"})
    assert f"{policy}=-" in lines_of(text)
    notes = notes_of(run(text))
    used, listed = (
        f"spec.mirrors[0].{kind}Connector.config.{policy}" for kind in ("source", "checkpoint")
    )
    assert f"that of {used} is used" in notes[listed]


def test_a_key_that_only_some_have_is_listed() -> None:
    text = with_configs(source={"admin.timeout.ms": 1000}, checkpoint={})
    assert "admin.timeout.ms=1000" in lines_of(text)
    path = "spec.mirrors[0].sourceConnector.config.admin.timeout.ms"
    assert "to those without it" in notes_of(run(text))[path]


def test_clusters_of_a_connector_are_listed() -> None:
    text = with_configs(source={"source.cluster.bootstrap.servers": "other:9092"})
    assert "other:9092" not in run(text).files["mm2.properties"]
    path = "spec.mirrors[0].sourceConnector.config.source.cluster.bootstrap.servers"
    assert path in notes_of(run(text))


def test_names_and_classes_of_connectors_are_not_the_resources() -> None:
    given: dict[str, Json] = {"name": "x", "connector.class": "y", "tasks.max": 3, "topics": "z"}
    text = with_configs(source=given)
    assert not {"name=x", "connector.class=y", "tasks.max=3", "topics=z"} & set(lines_of(text))
    at = "spec.mirrors[0].sourceConnector.config."
    notes = notes_of(run(text))
    assert {path.removeprefix(at) for path in notes if path.startswith(at)} == set(given)
    assert notes[f"{at}topics"] == "spec.mirrors[0].topicsPattern takes precedence"


# -- what the program says of the file -------------------------------------------------------------


def test_what_the_program_rejects_is_listed() -> None:
    text = with_configs(source={"replication.policy.class": "com.example.Mine"})
    path = "spec.mirrors[0].sourceConnector.config.replication.policy.class"
    reason = notes_of(run(text))[path]
    assert "sparkmirror rejects the written file because of it" in reason
    assert "unknown class" in reason


def test_what_has_no_effect_is_listed() -> None:
    text = with_configs(source={"topcs": "x", "key.converter": "org.example.Converter"})
    notes = notes_of(run(text))
    at = "spec.mirrors[0].sourceConnector.config."
    assert "did you mean source->target.topics" in notes[f"{at}topcs"]
    assert "records are forwarded byte for byte" in notes[f"{at}key.converter"]


def test_placeholder_values_are_not_reported() -> None:
    text = changed(SET_UP_B, spec__clusters__0__bootstrapServers="${strimzienv:SERVERS}")
    assert not [path for path in notes_of(run(text)) if "bootstrapServers" in path]
