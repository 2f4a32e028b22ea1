"""Both layouts are read, and all errors are reported at once, with their paths."""

from __future__ import annotations

import pytest

from sparkmirror.tools.convert.conversion import Format
from tests.tools.convert.resources import SET_UP_B, V1, Json, changed, errors_of, notes_of, run

OLD_REMEDY = "write the alias of a cluster in spec.clusters"


def test_all_errors_are_reported_at_once() -> None:
    text = changed(
        SET_UP_B,
        metadata__name="Not A Name",
        spec__replicas="three",
        spec__clusters__0__bootstrapServers=None,
        spec__clusters__1__authentication={"type": "none"},
        spec__mirrors__0__sourceCluster="elsewhere",
        spec__mirrors__0__sourceConnector__config={"a": [1]},
    )
    errors = errors_of(text)
    assert [error.partition(":")[0] for error in errors] == ["mirror.yaml"] * len(errors)
    found = {error.removeprefix("mirror.yaml: ").partition(":")[0] for error in errors}
    assert found == {
        "metadata.name=Not A Name",
        "spec.replicas=three",
        "spec.clusters[0].bootstrapServers",
        "spec.clusters[1].authentication.type=none",
        "spec.mirrors[0].sourceCluster=elsewhere",
        "spec.mirrors[0].sourceConnector.config.a=a list",
    }
    assert all("; " in error for error in errors)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        (
            {"spec__connectCluster": "nowhere"},
            (
                "spec.connectCluster=nowhere: is not an alias in spec.clusters; use one of: "
                "source, target"
            ),
        ),
        (
            {"spec__mirrors__0__targetCluster": "nowhere"},
            (
                "spec.mirrors[0].targetCluster=nowhere: is not an alias in spec.clusters; use one "
                "of: source, target"
            ),
        ),
        (
            {"spec__mirrors__0__targetCluster": "source"},
            (
                "spec.mirrors[0].targetCluster=source: is not the connectCluster, which Strimzi "
                "rejects; create a resource for each target cluster"
            ),
        ),
        (
            {"spec__mirrors__0__sourceCluster": "target"},
            "spec.mirrors[0] (target): its source is the target too; use another alias",
        ),
        (
            {"spec__mirrors__0__sourceCluster": None},
            f"spec.mirrors[0].sourceCluster: is missing; {OLD_REMEDY}",
        ),
        (
            {"spec__clusters__1__alias": "source", "spec__connectCluster": "source"},
            (
                "spec.clusters[1].alias=source: is the alias of another cluster too; use a "
                "different one for each cluster"
            ),
        ),
        ({"spec__mirrors": None}, "spec.mirrors: is missing; list at least one mirror"),
        (
            {"spec__mirrors": []},
            "spec.mirrors=a list: has no element; list at least one mirror",
        ),
        ({"spec": None}, "spec: is missing; add it"),
        ({"spec": "x"}, "spec=x: is not a mapping; write a mapping"),
        ({"metadata": None}, "metadata: is missing; add it"),
        (
            {"apiVersion": "kafka.strimzi.io/v1alpha1"},
            (
                "apiVersion=kafka.strimzi.io/v1alpha1: unknown version; convert it to "
                "kafka.strimzi.io/v1beta2 or kafka.strimzi.io/v1"
            ),
        ),
        (
            {"apiVersion": "kafka.strimzi.io/v1"},
            "spec.target: is missing; apiVersion v1 has spec.target and spec.mirrors[].source",
        ),
        (
            {"spec__clusters": None},
            (
                "spec.clusters: is missing; list the clusters, or use spec.target and "
                "spec.mirrors[].source"
            ),
        ),
        (
            {"spec__clusters": {}},
            "spec.clusters=a mapping: is not a list; write a list",
        ),
        (
            {"spec__mirrors__0__sourceConnector__state": "asleep"},
            (
                "spec.mirrors[0].sourceConnector.state=asleep: is not a state; "
                "use one of running, paused, stopped"
            ),
        ),
        (
            {"spec__mirrors__0__sourceConnector__tasksMax": -1},
            (
                "spec.mirrors[0].sourceConnector.tasksMax=-1: is not a whole number of 1 or more; "
                "write a number such as 1"
            ),
        ),
        (
            {"spec__mirrors__0__topicsPattern": ["a"]},
            "spec.mirrors[0].topicsPattern=a list: is a list, not one value; write it as a text",
        ),
        (
            {"spec__template": {"pod": {"volumes": [{"name": "tmp", "emptyDir": {}}]}}},
            (
                "spec.template.pod.volumes[0].name=tmp: is the name of a volume that the manifests "
                "have themselves; rename it"
            ),
        ),
    ],
)
def test_errors(changes: dict[str, Json], error: str) -> None:
    for format_ in Format:
        assert f"mirror.yaml: {error}" in errors_of(changed(SET_UP_B, **changes), format_)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"spec__target__groupId": None}, "spec.target.groupId: is missing; write its name"),
        (
            {"spec__clusters": []},
            "spec.clusters=a list: does not go with spec.target; use one of the two layouts",
        ),
        (
            {"spec__mirrors__0__sourceCluster": "eu"},
            (
                "spec.mirrors[0].sourceCluster=eu: does not go with spec.target; "
                "write source with its alias"
            ),
        ),
        (
            {"spec__mirrors__1__source": None},
            (
                "spec.mirrors[1].source: is missing; "
                "write alias and bootstrapServers of the source cluster"
            ),
        ),
        (
            {"spec__mirrors__1__source__alias": "eu"},
            (
                "spec.mirrors[1] (eu): its source is the source of another mirror too; "
                "use another alias"
            ),
        ),
        (
            {"spec__mirrors__1__source__alias": "e u"},
            (
                "spec.mirrors[1].source.alias=e u: is not an alias of up to 100 characters; "
                "write it with the characters [a-zA-Z0-9._-]{1,100}"
            ),
        ),
    ],
)
def test_errors_of_the_newer_layout(changes: dict[str, Json], error: str) -> None:
    assert errors_of(changed(V1, **changes)) == [f"mirror.yaml: {error}"]


def test_v1beta2_may_have_the_newer_layout_and_heartbeats() -> None:
    text = changed(V1, apiVersion="kafka.strimzi.io/v1beta2")
    beating = changed(text, spec__mirrors__0__heartbeatConnector={})
    assert "eu->backup.emit.heartbeats.enabled=true" in run(beating).files["mm2.properties"]
    v1 = run(changed(V1, spec__mirrors__0__heartbeatConnector={}))
    assert "heartbeats.enabled=true" not in v1.files["mm2.properties"]
    assert "Strimzi drops the field" in notes_of(v1)["spec.mirrors[0].heartbeatConnector"]


def test_a_cluster_that_no_mirror_uses_is_listed() -> None:
    spare = {"alias": "spare", "bootstrapServers": "x:1", "authentication": {"type": "odd"}}
    clusters = [
        {"alias": "source", "bootstrapServers": "a:1"},
        {"alias": "target", "bootstrapServers": "b:1"},
        spare,
    ]
    done = run(changed(SET_UP_B, spec__clusters=clusters))
    assert notes_of(done)["spec.clusters[2]"] == "no mirror uses this cluster"
    assert "spare" not in done.files["mm2.properties"]


def test_older_names_of_patterns() -> None:
    text = changed(
        SET_UP_B,
        spec__mirrors__0__topicsBlacklistPattern="old",
        spec__mirrors__0__groupsBlacklistPattern="g",
    )
    done = run(text)
    assert "source->target.topics.exclude=old" in done.files["mm2.properties"]
    reason = "the mirror has no checkpoint connector, which would read it"
    assert notes_of(done)["spec.mirrors[0].groupsBlacklistPattern"] == reason
    both = run(changed(text, spec__mirrors__0__topicsExcludePattern="new"))
    assert "source->target.topics.exclude=new" in both.files["mm2.properties"]
    stronger = "topicsExcludePattern takes precedence"
    assert notes_of(both)["spec.mirrors[0].topicsBlacklistPattern"] == stronger


def test_settings_of_the_target_are_the_workers() -> None:
    config = {
        "offset.flush.interval.ms": 1000,
        "producer.compression.type": "lz4",
        "consumer.fetch.max.bytes": 1,
        "ssl.protocol": "TLSv1.2",
        "sasl.mechanism": "PLAIN",
        "rest.port": 1,
        "group.id": "mine",
    }
    done = run(changed(SET_UP_B, spec__clusters__1__config=config))
    text, notes = done.files["mm2.properties"], notes_of(done)
    assert "target.offset.flush.interval.ms=1000" in text
    assert "target.producer.compression.type=lz4" in text
    assert "target.ssl.protocol=TLSv1.2" in text
    at = "spec.clusters[1].config."
    listed = {path.removeprefix(at) for path in notes if path.startswith(at)}
    assert listed == {"consumer.fetch.max.bytes", "sasl.mechanism", "rest.port", "group.id"}


def test_unused_settings_of_a_source_are_listed() -> None:
    config = {"ssl.cipher.suites": "A", "consumer.fetch.max.bytes": 1, "acks": "all"}
    done = run(changed(SET_UP_B, spec__clusters__0__config=config))
    assert "source.ssl.cipher.suites=A" in done.files["mm2.properties"]
    at = "spec.clusters[0].config."
    listed = {path.removeprefix(at) for path in notes_of(done) if path.startswith(at)}
    assert listed == {"consumer.fetch.max.bytes", "acks"}
