"""The settings of one worker or one connector of an mm2 file, with the names that the file uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sparkmirror.config.clients import BOOTSTRAP_SERVERS as SERVERS
from sparkmirror.config.expansion import (
    Expanded,
    connector_settings,
    origins,
    plain,
    worker_settings,
)
from sparkmirror.config.files.providers import CONFIG_PROVIDERS, Provider, resolve
from sparkmirror.config.findings import Findings, Origin, Settings
from sparkmirror.config.keys.families import OF_WORKERS, explain_families
from sparkmirror.config.mirror_configs import SOURCE_ALIAS
from sparkmirror.config.security.allowed_access import AllowedAccess
from sparkmirror.config.worker_config import WORKER_KEYS
from sparkmirror.types import FlowName


@dataclass(frozen=True, slots=True)
class FileContents:
    """The file while it is being read: its text, the providers it names, and what was found."""

    props: Mapping[str, str]
    providers: Mapping[str, Provider]
    findings: Findings
    allowed: AllowedAccess


def origin_names(found: Mapping[str, Origin]) -> dict[str, str]:
    """The file's names of keys, by the names that parsers use."""
    return {key: origin.key for key, origin in found.items()}


def _servers(flow: FlowName) -> dict[str, str]:
    """Whose addresses are missing if these keys are."""
    return {f"source.cluster.{SERVERS}": flow.source, f"target.cluster.{SERVERS}": flow.target}


def connector_names(flow: FlowName, expanded: Expanded) -> dict[str, str]:
    """The same of a connector's keys."""
    return origin_names(origins(expanded, _servers(flow)))


def worker_of(file: FileContents, flow: FlowName) -> Settings:
    """Of the worker that MirrorMaker 2 runs for a flow."""
    settings = _settings(file, worker_settings(file.props, flow), {SERVERS: flow.target})
    explain_families(settings, OF_WORKERS, WORKER_KEYS)
    return settings


def connector_of(
    file: FileContents, flow: FlowName, name: str, *, target_only: bool = False
) -> Settings:
    """Of one connector; `target_only`: one that needs nothing of its source but the name."""
    return _settings(
        file, expanded_connector(file, flow, name, target_only=target_only), _servers(flow)
    )


def expanded_connector(
    file: FileContents, flow: FlowName, name: str, *, target_only: bool
) -> Expanded:
    """The same with placeholders."""
    # A provider of the top level is not the connector's; one of the flow would do nothing.
    expanded = {
        key: setting
        for key, setting in connector_settings(file.props, flow, name).items()
        if key != CONFIG_PROVIDERS or setting.origin != CONFIG_PROVIDERS
    }
    if target_only:
        expanded = {
            key: setting
            for key, setting in expanded.items()
            if key == SOURCE_ALIAS or not key.startswith("source.")
        }
    return expanded


def _settings(file: FileContents, expanded: Expanded, servers: Mapping[str, str]) -> Settings:
    """Resolved values, with errors reported under the names of the file."""
    findings = file.findings.renamed(origins(expanded, servers))
    settings = Settings(resolve(plain(expanded), file.providers, findings), findings)
    file.allowed.check(settings)
    return settings
