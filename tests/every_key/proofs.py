"""Keys that the config package acts on itself, each with a proof that it does.

No code elsewhere reads their values: they decide which settings there are at all.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sparkmirror.config.checks.plugin_modules import PLUGIN_MODULES
from sparkmirror.config.connector_spec import parse_connector
from sparkmirror.config.mm2 import load_mm2
from sparkmirror.config.mm2_keys import INTERNAL_REST
from sparkmirror.config.security.allowed_access import ALLOWED_FILES, ALLOWED_URLS
from sparkmirror.errors import ConfigErrors
from tests.config.worker_files import worker_with

TOKENS = "https://tokens.example.com/"
FILE = "org.apache.kafka.common.config.provider.FileConfigProvider"
POLICY, ALLOWLIST = (f"connector.client.config.override.{name}" for name in ("policy", "allowlist"))
CONNECTOR = {
    "name": "c",
    "connector.class": "MirrorSourceConnector",
    "source.cluster.alias": "a",
    "source.cluster.bootstrap.servers": "h:1",
    "target.cluster.bootstrap.servers": "target-kafka:9092",
}


def flows(folder: Path, *lines: str) -> list[str]:
    path = folder / "mm2.properties"
    servers = [f"{alias}.bootstrap.servers=h:{at}" for at, alias in enumerate("abc", 1)]
    path.write_text("\n".join((*servers, *lines)))
    return [str(flow.name) for flow in load_mm2(path).flows]


def prove_clusters(folder: Path) -> None:
    two = flows(folder, "clusters=a,b", "enabled=true")
    three = flows(folder, "clusters=a,b,c", "enabled=true")
    assert (len(two), len(three)) == (2, 6)


def prove_enabled(folder: Path) -> None:
    lines = ("clusters=a,b", "a->b.enabled=true")
    assert flows(folder, *lines, "b->a.enabled=false") == ["a->b"]
    assert flows(folder, *lines, "b->a.enabled=true") == ["a->b", "b->a"]


def prove_internal_rest(folder: Path) -> None:
    lines = ("clusters=a,b", "a->b.enabled=true", "listeners=http://127.0.0.1:28083")
    flows(folder, *lines)
    path = folder / "mm2.properties"
    assert load_mm2(path).rest is None
    flows(folder, *lines, f"{INTERNAL_REST}=true")
    rest = load_mm2(path).rest
    assert rest is not None
    assert [listener.port for listener in rest.listeners] == [28083]


def prove_config_providers(folder: Path) -> None:
    (folder / "secrets").write_text("servers=elsewhere:9092\n")
    props = {
        "config.providers.mine.class": FILE,
        "bootstrap.servers": f"${{mine:{folder / 'secrets'}:servers}}",
    }
    file = worker_with({**props, "config.providers": "mine"})
    assert file.worker.bootstrap_servers == ("elsewhere:9092",)
    with pytest.raises(ConfigErrors, match="mine:"):
        worker_with(props)


def prove_connector_class(folder: Path) -> None:
    del folder
    for name in ("source", "heartbeat", "checkpoint"):
        props = CONNECTOR | {"connector.class": f"Mirror{name.capitalize()}Connector"}
        assert parse_connector(props, worker_with({})).kind == name


def refused(worker: dict[str, str]) -> list[str]:
    """Overrides that such a worker refuses to a connector."""
    overrides = {"producer.override.client.id": "x", "producer.override.acks": "1"}
    try:
        parse_connector(CONNECTOR | overrides, worker_with(worker))
    except ConfigErrors as errors:
        return [error.key for error in errors.errors]
    return []


def prove_override_policy(folder: Path) -> None:
    del folder
    assert refused({POLICY: "All"}) == []
    assert len(refused({POLICY: "None"})) == 2


def prove_override_allowlist(folder: Path) -> None:
    del folder
    assert refused({POLICY: "Allowlist", ALLOWLIST: "acks"}) == ["producer.override.client.id"]


def refused_logins(worker: dict[str, str]) -> list[str]:
    """What such a worker does not let a connector's login use."""
    prefix = "source.cluster.sasl.oauthbearer."
    login = {f"{prefix}token.endpoint.url": TOKENS, f"{prefix}assertion.file": "/a/file"}
    try:
        parse_connector(CONNECTOR | login, worker_with(worker))
    except ConfigErrors as errors:
        return [error.key.removeprefix(prefix) for error in errors.errors]
    return []


def prove_allowed_urls(folder: Path) -> None:
    del folder
    assert refused_logins({}) == ["token.endpoint.url", "assertion.file"]
    assert refused_logins({ALLOWED_URLS: TOKENS}) == ["assertion.file"]


def prove_allowed_files(folder: Path) -> None:
    del folder
    assert refused_logins({ALLOWED_FILES: "/a/file"}) == ["token.endpoint.url"]


def prove_plugin_modules(folder: Path) -> None:
    del folder
    props = CONNECTOR | {"topic.filter.class": "my_mirror:Topics"}
    assert parse_connector(props, worker_with({PLUGIN_MODULES: "my_mirror"})).kind == "source"
    with pytest.raises(ConfigErrors, match=r"topic\.filter\.class=my_mirror:Topics"):
        parse_connector(props, worker_with({PLUGIN_MODULES: "other"}))


PROOFS: dict[str, Callable[[Path], None]] = {
    "clusters": prove_clusters,
    "config.providers": prove_config_providers,
    "connector.class": prove_connector_class,
    "enabled": prove_enabled,
    INTERNAL_REST: prove_internal_rest,
    POLICY: prove_override_policy,
    ALLOWLIST: prove_override_allowlist,
    ALLOWED_URLS: prove_allowed_urls,
    ALLOWED_FILES: prove_allowed_files,
    PLUGIN_MODULES: prove_plugin_modules,
}
