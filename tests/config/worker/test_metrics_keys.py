"""Where metrics go, in a worker's file and in an mm2 file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from sparkmirror.config.mm2 import MirrorMakerConfig, load_mm2
from sparkmirror.config.mm2_keys import INTERNAL_REST, NODE_METRICS_KEYS
from sparkmirror.config.worker.metrics_keys import METRICS_KEYS, MetricsConfig, PerPartition
from sparkmirror.config.worker.rest_keys import Listener
from sparkmirror.errors import ConfigErrors
from tests.config.worker_files import worker_with

PREFIX = "sparkmirror.metrics."
ALL = {
    f"{PREFIX}listeners": "http://:9404,https://h:1",
    f"{PREFIX}per.partition": "never",
    f"{PREFIX}otlp.endpoint": "http://collector:4318/v1/metrics",
    f"{PREFIX}otlp.interval.ms": "15000",
}
TYPED = MetricsConfig(
    (Listener("http", "", 9404), Listener("https", "h", 1)),
    PerPartition.NEVER,
    "http://collector:4318/v1/metrics",
    15000,
)


def mm2(folder: Path, props: Mapping[str, str]) -> MirrorMakerConfig:
    lines = ["clusters=a,b", "a.bootstrap.servers=h:1", "b.bootstrap.servers=h:2"]
    lines += ["a->b.enabled=true", *(f"{key}={value}" for key, value in props.items())]
    path = folder / "mm2.properties"
    path.write_text("\n".join(lines))
    return load_mm2(path)


def test_both_files_have_the_same_keys(tmp_path: Path) -> None:
    assert set(NODE_METRICS_KEYS) == set(METRICS_KEYS.names) == set(ALL)
    store = {"ssl.keystore.location": "/k", "ssl.keystore.type": "PEM"}
    assert worker_with({**ALL, **store}).metrics == TYPED
    https = {f"listeners.https.{key}": value for key, value in store.items()}
    node = mm2(tmp_path, {**ALL, **https, INTERNAL_REST: "true"})
    assert node.metrics == TYPED
    assert node.warnings == ()


def test_a_node_without_a_rest_api_may_serve_metrics_in_plain_http(tmp_path: Path) -> None:
    plain = {f"{PREFIX}listeners": "http://:9404"}
    assert mm2(tmp_path, plain).metrics.listeners == (Listener("http", "", 9404),)
    assert mm2(tmp_path, plain).warnings == ()
    with pytest.raises(ConfigErrors, match="https needs the certificates of the REST API"):
        mm2(tmp_path, {f"{PREFIX}listeners": "https://:9404"})


def test_nothing_is_served_or_pushed_by_default(tmp_path: Path) -> None:
    assert worker_with({}).metrics == mm2(tmp_path, {}).metrics == MetricsConfig()


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("listeners", ":9404", "is not a listener"),
        ("per.partition", "sometimes", "auto, always, never"),
        ("otlp.endpoint", "collector:4318", "is not a URL"),
        ("otlp.interval.ms", "10", "1000"),
    ],
)
def test_bad_values_are_named(key: str, value: str, problem: str, tmp_path: Path) -> None:
    for load in (worker_with, lambda props: mm2(tmp_path, props)):
        with pytest.raises(ConfigErrors) as caught:
            load({PREFIX + key: value})
        assert f"{PREFIX}{key}" in str(caught.value)
        assert problem in str(caught.value)


@pytest.mark.parametrize(
    "key", ["prometheus.metrics.reporter.listener", "metrics.context.x", "metric.reporters"]
)
def test_reporters_of_java_are_explained(key: str) -> None:
    (warning,) = (text for text in worker_with({key: "x"}).warnings if key in text)
    assert "/metrics" in warning


def test_a_typing_error_is_recognized() -> None:
    (warning,) = worker_with({f"{PREFIX}listener": "http://:9404"}).warnings
    assert f"did you mean {PREFIX}listeners?" in warning
