"""Parses the options of `sparkmirror groups`; reports all errors at once.

The properties file is either a client's, for the target cluster, as in the group offset sync
application of the migration guides, or an mm2 file, which has all clusters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sparkmirror.config.clients import ClientConfig, parse_client
from sparkmirror.config.config_def import BadValue, Definition, parse_list
from sparkmirror.config.expansion import CLUSTERS
from sparkmirror.config.files.properties import load_properties
from sparkmirror.config.files.providers import resolve
from sparkmirror.config.findings import Findings, Settings
from sparkmirror.config.keys.classes import DEFAULT_POLICY, IDENTITY_POLICY
from sparkmirror.config.keys.client_keys import ADMIN_KEYS
from sparkmirror.config.keys.connector_keys import COMMON_KEYS
from sparkmirror.config.keys.plugins import CONNECTOR_CLASS
from sparkmirror.config.mirror_configs import CheckpointConfig
from sparkmirror.config.mm2 import FlowConfig, load_mm2
from sparkmirror.config.patterns.java_regex import compile_patterns
from sparkmirror.errors import ConfigError, ConfigErrors
from sparkmirror.mirror.policy import ReplicationPolicy, flow_policy, make_policy
from sparkmirror.tools.check.checked_file import load_checked
from sparkmirror.tools.groups.offset_sync import SyncSettings

POLICY_CLASS = COMMON_KEYS["replication.policy.class"]
SEPARATOR = COMMON_KEYS["replication.policy.separator"]
INTERNAL_SEPARATOR = COMMON_KEYS["replication.policy.internal.topic.separator.enabled"]
POLICY_KEYS = Definition(POLICY_CLASS, SEPARATOR, INTERNAL_SEPARATOR)
SHORT_POLICIES = {"Default": DEFAULT_POLICY, "Identity": IDENTITY_POLICY}
# The sample application's files use the names of Java constants: BOOTSTRAP_SERVERS_CONFIG.
CONSTANT_SUFFIX = "_CONFIG"
TARGET = "target"
PROTOCOL, SSL = "security.protocol", "SSL"
OWN_CERTIFICATE = ("ssl.keystore.location", "ssl.keystore.certificate.chain")


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """The options of `groups sync`."""

    groups: str
    properties: Path
    source: str | None = None
    target: str | None = None
    policy: str | None = None
    separator: str | None = None
    tls: bool = False
    mutual_tls: bool = False


class _ToolClients(NamedTuple):
    """Settings from a properties file of either kind."""

    source_alias: str
    policy: ReplicationPolicy
    admin: ClientConfig
    reader: ClientConfig
    admin_timeout_ms: int


def read_sync_options(options: SyncOptions) -> SyncSettings:
    """Check all options and the file.

    Raises:
        ConfigErrors: everything that is wrong.
    """
    errors: list[ConfigError] = []
    groups: tuple[str, ...] = ()
    pattern = None
    client: _ToolClients | None = None
    try:
        groups = parse_list(options.groups.strip())
        pattern = compile_patterns(groups)
    except BadValue as bad:
        errors.append(ConfigError("--groups", options.groups, bad.reason, bad.remedy))
    else:
        if pattern is None:
            errors.append(ConfigError("--groups", None, "names no group", "write g1,g2 or .*"))
    with _collected(errors):
        client = _read_client(options, errors)
    if errors or pattern is None or client is None:
        raise ConfigErrors(errors)
    return SyncSettings(groups, pattern, *client)


def choose_flow(path: Path, source: str | None, target: str | None) -> FlowConfig:
    """The flow of an mm2 file that the options name, or the only one.

    Raises:
        ConfigErrors: the file is not an mm2 file or is wrong, or the options fit no single flow.
    """
    if CLUSTERS not in load_properties(path):
        reason = "this is not an mm2 file, but both clusters are needed"
        remedy = "name the mm2 file of the mirror, or its checkpoint connector's settings"
        raise ConfigErrors([ConfigError("", None, reason, remedy, str(path))])
    flows = load_mm2(path).flows
    chosen = [
        flow
        for flow in flows
        if source in (None, flow.name.source) and target in (None, flow.name.target)
    ]
    if len(chosen) != 1:
        raise ConfigErrors([_not_one(path, flows, chosen, source, target)])
    return chosen[0]


def choose_checkpoints(
    path: Path, source: str | None, target: str | None, worker: Path | None
) -> CheckpointConfig:
    """The checkpoint settings of an mm2 file's flow, or of a checkpoint connector's own file.

    Raises:
        ConfigErrors, ConfigError: the file is neither or is wrong, or the options fit no flow.
    """
    if path.suffix != ".json" and CONNECTOR_CLASS not in load_properties(path):
        return choose_flow(path, source, target).checkpoint
    (connector,) = load_checked(path, worker).connectors
    config = connector.config
    if not isinstance(config, CheckpointConfig):
        reason = "these are not the settings of a checkpoint connector"
        remedy = "name the file of the MirrorCheckpointConnector: it contains both clusters"
        raise ConfigError(CONNECTOR_CLASS, None, reason, remedy, str(path))
    return config


@contextmanager
def _collected(errors: list[ConfigError]) -> Iterator[None]:
    try:
        yield
    except ConfigErrors as found:
        errors += found.errors
    except ConfigError as found:
        errors.append(found)


def _not_one(
    path: Path,
    flows: tuple[FlowConfig, ...],
    chosen: list[FlowConfig],
    source: str | None,
    target: str | None,
) -> ConfigError:
    given = f"{source or '*'}->{target or '*'}"
    names = ", ".join(str(flow.name) for flow in (chosen or flows))
    if not chosen:
        return ConfigError("", None, f"no flow {given}", f"it has {names}", str(path))
    reason = f"more than one flow {given}: {names}"
    return ConfigError("", None, reason, "choose one with --source and --target", str(path))


def _read_client(options: SyncOptions, errors: list[ConfigError]) -> _ToolClients | None:
    props: Mapping[str, str] = {}
    with _collected(errors):
        props = load_properties(options.properties)
    if CLUSTERS in props:
        return _of_flow(options, errors)
    return _of_target(options, props, errors)


def _of_flow(options: SyncOptions, errors: list[ConfigError]) -> _ToolClients:
    for name, given in (
        ("--policy", options.policy),
        ("--separator", options.separator),
        ("-ssl", options.tls or None),
        ("-mtls", options.mutual_tls or None),
    ):
        if given is not None:
            shown = given if isinstance(given, str) else None
            reason = f"{options.properties} is an mm2 file, which sets that itself"
            errors.append(ConfigError(name, shown, reason, "remove the option"))
    config = choose_flow(options.properties, options.source, options.target).checkpoint
    return _ToolClients(
        config.source_alias,
        flow_policy(config),
        config.target_client,
        config.checkpoints_reader,
        config.admin_timeout_ms,
    )


def _of_target(
    options: SyncOptions, props: Mapping[str, str], errors: list[ConfigError]
) -> _ToolClients | None:
    findings = Findings(str(options.properties))
    values = _with_tls(options, resolve(_dotted(props), None, findings), errors)
    alias = options.target or TARGET
    client = parse_client(Settings(values, findings), alias) if props else None
    policy: ReplicationPolicy | None = None
    with _collected(errors):
        policy = _make_policy(options, values, findings, errors)
    errors += findings.errors
    if not (options.source or "").strip():
        reason = "is required with a properties file of the target cluster"
        remedy = "use the mirror's alias of the source cluster"
        errors.append(ConfigError("--source", options.source or None, reason, remedy))
    if client is None or policy is None:
        return None
    return _ToolClients(options.source or "", policy, client, client, client.default_api_timeout_ms)


def _with_tls(
    options: SyncOptions, values: dict[str, str], errors: list[ConfigError]
) -> dict[str, str]:
    """As in the sample application, an option turns TLS on; the file names the stores."""
    if not (options.tls or options.mutual_tls):
        return values
    name = "-mtls" if options.mutual_tls else "-ssl"
    given = values.get(PROTOCOL, SSL).upper()
    if given != SSL:
        reason = f"it means {PROTOCOL}={SSL}, but the file has {given}"
        errors.append(
            ConfigError(name, None, reason, "remove the option: the file already sets the protocol")
        )
    if options.mutual_tls and not any(values.get(key) for key in OWN_CERTIFICATE):
        reason = f"a client certificate is needed, but {options.properties} names none"
        errors.append(ConfigError(name, None, reason, f"set {OWN_CERTIFICATE[0]} there"))
    return values | {PROTOCOL: given}


def _make_policy(
    options: SyncOptions,
    values: Mapping[str, str],
    findings: Findings,
    errors: list[ConfigError],
) -> ReplicationPolicy:
    """The policy of the options, else of the file, else the default."""
    given: dict[str, str] = {}
    if options.policy is not None:
        given[POLICY_CLASS.name] = SHORT_POLICIES.get(options.policy, options.policy)
    if options.separator is not None:
        given[SEPARATOR.name] = options.separator
    in_file = {
        name: values[name] for name in POLICY_KEYS.names if name in values and name not in given
    }
    own = Findings()
    names = {POLICY_CLASS.name: "--policy", SEPARATOR.name: "--separator"}
    typed = POLICY_KEYS.parse(given, own.within(names))
    parsed = POLICY_KEYS.parse(in_file, findings) | {name: typed[name] for name in given}
    errors += own.errors
    is_set = SEPARATOR.name in {*given, *in_file}
    return make_policy(
        parsed[POLICY_CLASS.name],
        options.source,
        parsed[SEPARATOR.name] if is_set else None,
        parsed[INTERNAL_SEPARATOR.name],
    )


def _dotted(props: Mapping[str, str]) -> dict[str, str]:
    return {_dotted_name(name): value for name, value in props.items()}


def _dotted_name(name: str) -> str:
    """The key of a Java constant; any other name unchanged."""
    whole = name.lower().replace("_", ".")
    short = name.removesuffix(CONSTANT_SUFFIX).lower().replace("_", ".")
    found = [each for each in (short, whole) if name.isupper() and each in ADMIN_KEYS]
    return found[0] if found else name
