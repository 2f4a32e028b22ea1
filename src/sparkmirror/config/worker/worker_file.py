"""Loads a worker's file, `connect-distributed.properties`: the worker, its group and its REST API.

A worker without a file has environment variables instead. All errors are raised at once. Values
are read as in Java: a quote character is part of the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path

from sparkmirror.config.checks.advice import topic_setting
from sparkmirror.config.checks.override_policy import OVERRIDE_KEYS, OverridePolicy, override_policy
from sparkmirror.config.checks.plugin_modules import PLUGIN_KEYS, PLUGIN_MODULES
from sparkmirror.config.config_def import Definition, Key, Type
from sparkmirror.config.files.properties import load_properties
from sparkmirror.config.files.providers import CONFIG_PROVIDERS, Provider, load_providers, resolve
from sparkmirror.config.findings import Findings, Settings
from sparkmirror.config.keys.client_keys import ADMIN_KEYS, CLIENT_KEYS, no_effect
from sparkmirror.config.keys.families import NO_CONVERSION, OF_WORKERS, explain_families
from sparkmirror.config.keys.group_keys import GroupConfig
from sparkmirror.config.masking import is_secret
from sparkmirror.config.mm2_keys import SPARK
from sparkmirror.config.security.allowed_access import ALLOWED_KEYS, AllowedAccess, allowed_access
from sparkmirror.config.worker.environment import WHERE, read_variables
from sparkmirror.config.worker.inter_worker import (
    INTER_WORKER_KEYS,
    InterWorkerConfig,
    inter_worker_config,
)
from sparkmirror.config.worker.log_keys import LOG_FORMAT, LOG_KEYS, LogFormat
from sparkmirror.config.worker.log_variables import LevelVariable
from sparkmirror.config.worker.metrics_keys import METRICS_KEYS, MetricsConfig, metrics_config
from sparkmirror.config.worker.rest_keys import ADVERTISED_HOST, REST_KEYS, RestConfig, rest_config
from sparkmirror.config.worker.rest_security import ADMIN_HTTPS_PREFIX, HTTPS_PREFIX
from sparkmirror.config.worker_config import (
    CONVERTER_KEYS,
    SHARED_KEYS,
    STORAGE_PREFIXES,
    WorkerConfig,
    parse_worker,
)

# The worker's own cluster has no alias; messages use this one.
OWN_CLUSTER = "worker"
PART_OF_VALUE = "part of the value, as in Java"
# Prefixes of keys that are checked elsewhere or need no check.
KNOWN_PREFIXES = (
    f"{SPARK}.",
    f"{CONFIG_PROVIDERS}.",
    *(f"{role}." for role in CLIENT_KEYS),
    *(
        f"{part}.converter."
        for part in ("key", "value", "header", "internal.key", "internal.value")
    ),
    "metrics.context.",
    "prometheus.metrics.reporter.",
    "topic.creation.",
    HTTPS_PREFIX,
    ADMIN_HTTPS_PREFIX,
)


def _flag(name: str, doc: str) -> Key:
    return Key(name=name, type=Type.BOOLEAN, default=True, doc=doc)


TRACKING_KEYS = Definition(
    _flag("topic.tracking.enable", "Whether the REST API lists the topics that a connector uses."),
    _flag("topic.tracking.allow.reset", "Whether that list may be reset."),
)

_UNUSED_KEYS = Definition(
    *CONVERTER_KEYS,
    *no_effect(
        NO_CONVERSION,
        Type.STRING,
        *(
            f"{part}.converter{rest}"
            for part in ("internal.key", "internal.value")
            for rest in ("", ".schemas.enable")
        ),
    ),
    *no_effect(
        "there are no Java plugins to load",
        Type.STRING,
        "plugin.path",
        "plugin.discovery",
    ),
    *no_effect(
        "workers share tasks by their own protocol; those of a lost worker move at once",
        Type.STRING,
        "connect.protocol",
        "scheduled.rebalance.max.delay.ms",
        "worker.sync.timeout.ms",
        "worker.unsync.backoff.ms",
    ),
    *no_effect(
        "remote topics are created like their source topics",
        Type.STRING,
        "topic.creation.enable",
    ),
    *no_effect(
        "missing internal topics are always created",
        Type.STRING,
        "internal.topics.automatic.creation.enable",
    ),
)

# Keys of a worker's file, besides client keys and security keys.
WORKER_FILE_KEYS = (
    SHARED_KEYS
    + ALLOWED_KEYS
    + PLUGIN_KEYS
    + INTER_WORKER_KEYS
    + REST_KEYS
    + METRICS_KEYS
    + OVERRIDE_KEYS
    + TRACKING_KEYS
    + LOG_KEYS
    + Definition(
        Key(
            name=CONFIG_PROVIDERS,
            type=Type.LIST,
            default=(),
            doc="Names of config providers; see the section about them.",
        )
    )
    + _UNUSED_KEYS
)
KEY_NAMES = (*WORKER_FILE_KEYS.names, *ADMIN_KEYS.names)


@dataclass(frozen=True, slots=True)
class WorkerFile:
    """A whole worker file. `props` are resolved, `raw_props` are as written.

    `spark` has the settings for Spark, by full name. `allowed` and `plugin_modules` limit
    connectors; None: they may name any module. `names` has the names of keys in messages, if
    different; `connector_names` has those of connectors that an mm2 file describes, by connector.
    `log_levels` come from environment variables only.
    """

    path: Path
    worker: WorkerConfig
    rest: RestConfig
    inter_worker: InterWorkerConfig
    override: OverridePolicy
    allowed: AllowedAccess
    plugin_modules: tuple[str, ...] | None
    topic_tracking: bool
    topic_tracking_reset: bool
    props: Mapping[str, str] = field(repr=False)
    raw_props: Mapping[str, str] = field(repr=False)
    providers: Mapping[str, Provider] = field(repr=False)
    spark: Mapping[str, str] = field(repr=False)
    warnings: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict, repr=False)
    connector_names: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    log_levels: tuple[LevelVariable, ...] = ()
    log_format: LogFormat = LogFormat.TEXT
    metrics: MetricsConfig = field(default_factory=MetricsConfig)

    @property
    def group(self) -> GroupConfig:
        """The group of workers."""
        return self.worker.group


def load_worker(path: Path) -> WorkerFile:
    """Read the worker file `path`.

    Raises:
        ConfigErrors: everything that is wrong with the file.
    """
    return parse_worker_file(load_properties(path), path)


def load_worker_variables(environ: Mapping[str, str]) -> WorkerFile:
    """The worker that environment variables describe.

    Raises:
        ConfigErrors: everything that is wrong with them.
        ConfigError: there are none.
    """
    variables = read_variables(environ, KEY_NAMES)
    file = parse_worker_file(variables.props, WHERE, variables.findings)
    return replace(file, log_levels=variables.levels)


def parse_worker_file(
    raw: Mapping[str, str], path: Path, findings: Findings | None = None
) -> WorkerFile:
    """The worker of properties that were already read.

    `findings` has the findings so far, and the names of keys in messages.

    Raises:
        ConfigErrors: everything that is wrong with them.
    """
    findings = Findings(str(path)) if findings is None else findings
    providers = load_providers(raw, findings)
    settings = Settings(resolve(raw, providers, findings), findings)
    values = WORKER_FILE_KEYS.parse(*settings)
    explain_families(settings, OF_WORKERS, WORKER_FILE_KEYS)
    _explain_clients_of_sinks(settings)
    metrics = metrics_config(values)
    file = WorkerFile(
        path=path,
        worker=parse_worker(settings, OWN_CLUSTER, SHARED_KEYS),
        rest=rest_config(values, settings, metrics.listeners),
        metrics=metrics,
        inter_worker=inter_worker_config(values, findings),
        override=override_policy(values),
        allowed=allowed_access(values, default=()),
        plugin_modules=values[PLUGIN_MODULES],
        topic_tracking=values["topic.tracking.enable"],
        topic_tracking_reset=values["topic.tracking.allow.reset"],
        log_format=LogFormat(values[LOG_FORMAT] or LogFormat.TEXT),
        props=settings.values,
        raw_props=dict(raw),
        providers=providers,
        spark={k: v for k, v in settings.values.items() if k.startswith(f"{SPARK}.")},
        warnings=_warnings(raw, findings),
        names={key: origin.key for key, origin in findings.origins.items()},
    )
    findings.raise_errors()
    return file


def _explain_clients_of_sinks(settings: Settings) -> None:
    """Warn once for each family: files often repeat the whole login under every prefix."""
    for role in ("consumer", "admin"):
        name = next((key for key in settings.values if key.startswith(f"{role}.")), None)
        if name is not None:
            settings.findings.warn_key(
                name,
                f"has no effect, like every {role}.* here: it is for sink connectors, as in Kafka "
                f"Connect; a connector's own clients have source.{role}.* and target.{role}.*",
            )


def _warnings(raw: Mapping[str, str], findings: Findings) -> tuple[str, ...]:
    for key, value in raw.items():
        if len(value) > 1 and value[0] == value[-1] == '"' and not is_secret(key):
            what = (
                ("removed, because host names have none")
                if key == ADVERTISED_HOST
                else PART_OF_VALUE
            )
            findings.warn_key(key, f"the quotes are {what}: {value}")
        if text := _advice(key, findings):
            findings.warn_key(key, text)
    return findings.warnings


def _advice(key: str, findings: Findings) -> str | None:
    """The message about a key that has no effect."""
    if key in WORKER_FILE_KEYS or key in ADMIN_KEYS or key.startswith(KNOWN_PREFIXES):
        return None
    if key.startswith(STORAGE_PREFIXES):
        return topic_setting(key)
    close = get_close_matches(key, KEY_NAMES, 1, 0.85)
    meant = f"; did you mean {findings.origin(close[0]).key}?" if close else ""
    return f"unknown key, ignored{meant}"
