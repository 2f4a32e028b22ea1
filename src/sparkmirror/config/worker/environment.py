"""A worker's settings from environment variables, as in containers of Kafka Connect.

Decides which variable sets which key, and what happens to all others. Runs on: worker, once, at the
start. `remove_variables` then removes them, so that Spark's processes do not inherit them.

Mirrors: cp-kafka-connect (Confluent 7 and 8), which writes every CONNECT_* variable into a
properties file, and Debezium's connect-base (3.8), which also has some names without the prefix.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path

import javaproperties

from sparkmirror.config.files.properties import parse_entries
from sparkmirror.config.files.variable_names import PREFIX, key_of, shown
from sparkmirror.config.findings import Findings, Origin
from sparkmirror.config.worker.image_variables import unused_warnings, why_unused
from sparkmirror.config.worker.log_variables import LevelVariable, is_log_level, log_levels
from sparkmirror.errors import ConfigError

# Takes the place of the file's path for a worker without a file.
WHERE = Path("environment variables")
# Other programs use such names too; this one shows whether they are for a worker.
DEBEZIUM_SIGN = "BOOTSTRAP_SERVERS"
DEBEZIUM = {
    DEBEZIUM_SIGN: "bootstrap.servers",
    "GROUP_ID": "group.id",
    "CONFIG_STORAGE_TOPIC": "config.storage.topic",
    "OFFSET_STORAGE_TOPIC": "offset.storage.topic",
    "STATUS_STORAGE_TOPIC": "status.storage.topic",
    "KEY_CONVERTER": "key.converter",
    "VALUE_CONVERTER": "value.converter",
    "INTERNAL_KEY_CONVERTER": "internal.key.converter",
    "INTERNAL_VALUE_CONVERTER": "internal.value.converter",
    "REST_HOST_NAME": "rest.host.name",
    "REST_PORT": "rest.port",
    "ADVERTISED_HOST_NAME": "rest.advertised.host.name",
    "ADVERTISED_PORT": "rest.advertised.port",
    "OFFSET_FLUSH_INTERVAL_MS": "offset.flush.interval.ms",
    "OFFSET_FLUSH_TIMEOUT_MS": "offset.flush.timeout.ms",
    "SHUTDOWN_TIMEOUT": "task.shutdown.graceful.timeout.ms",
}
# The defaults of its image for required settings.
DEBEZIUM_DEFAULTS = {"group.id": "1", "status.storage.topic": "connect-status"}


@dataclass(frozen=True, slots=True)
class Variables:
    """The settings of a worker in the environment; messages in `findings` name variables."""

    findings: Findings
    levels: tuple[LevelVariable, ...]
    props: Mapping[str, str] = field(repr=False)


def read_variables(environ: Mapping[str, str], known: Iterable[str]) -> Variables:
    """The settings of a worker that has no file; `known` are the keys that a worker may have.

    Errors are in the findings.

    Raises:
        ConfigError: no variable is for a worker.
    """
    is_debezium = bool(environ.get(DEBEZIUM_SIGN))
    connect, plain = _by_key(environ), _plain_by_key(environ) if is_debezium else {}
    chosen = plain | {key: names[0] for key, names in connect.items()}
    if not chosen:
        raise _nothing()
    findings = Findings(origins=_origins(known, chosen, is_debezium=is_debezium))
    _check_same_keys(environ, connect, plain, findings)
    for text in unused_warnings(environ, is_debezium=is_debezium):
        findings.warn(text)
    props = {key: _value(key, environ[name], findings) for key, name in chosen.items()}
    if is_debezium:
        props |= _defaults(props, findings)
    return Variables(findings, log_levels(environ, findings, is_debezium=is_debezium), props)


def connect_names(environ: Mapping[str, str]) -> list[str]:
    """The variables that would have an effect on a worker without a file."""
    return [name for name in sorted(environ) if _is_ours(name, environ[name])]


def remove_variables(environ: MutableMapping[str, str]) -> None:
    """Remove every CONNECT_* variable, so that no process started later inherits it."""
    for name in [name for name in environ if name.startswith(PREFIX)]:
        del environ[name]


def _is_ours(name: str, value: str) -> bool:
    return name.startswith(PREFIX) and why_unused(name, value) is None


def _by_key(environ: Mapping[str, str]) -> dict[str, list[str]]:
    """The variables with the prefix, by key."""
    found: dict[str, list[str]] = {}
    for name in connect_names(environ):
        if not is_log_level(name):
            found.setdefault(key_of(name), []).append(name)
    return found


def _plain_by_key(environ: Mapping[str, str]) -> dict[str, str]:
    """Debezium's names; its image treats empty ones as unset."""
    return {key: name for name, key in DEBEZIUM.items() if environ.get(name)}


def _nothing() -> ConfigError:
    return ConfigError(
        "FILE",
        None,
        f"missing, and no environment variable {PREFIX}* has a setting for a worker",
        f"name a worker's file, or set {PREFIX}BOOTSTRAP_SERVERS and so on",
    )


def _origins(
    known: Iterable[str], chosen: Mapping[str, str], *, is_debezium: bool
) -> dict[str, Origin]:
    """The name of each key in messages, including missing keys."""
    names = {key: shown(key) for key in known}
    if is_debezium:
        names |= {key: shown(key, name) for name, key in DEBEZIUM.items()}
    names |= {key: shown(key, name) for key, name in chosen.items()}
    return {key: Origin(name) for key, name in names.items()}


def _check_same_keys(
    environ: Mapping[str, str],
    connect: Mapping[str, list[str]],
    plain: Mapping[str, str],
    findings: Findings,
) -> None:
    for key, names in connect.items():
        if len(names) > 1:
            reason = f"set the same key, {key}"
            findings.error(" and ".join(names), None, reason, "keep one of them")
        other = plain.get(key)
        if other is not None and environ[other] != environ[names[0]]:
            findings.warn(f"{other}: no effect: {names[0]} sets {key}")


def _value(key: str, text: str, findings: Findings) -> str:
    """`text` as read from the properties file that the images write, with `\\` escapes.

    That file could keep only the first of several lines; here all of them are the value,
    unchanged: it may be a certificate.
    """
    try:
        text.encode()
        entries = tuple(parse_entries(f"key={text}"))
    except UnicodeEncodeError:
        findings.error(key, None, "is not text in UTF-8")
    except javaproperties.InvalidUEscapeError:
        findings.error(key, None, "malformed escape", "write \\u and four hex digits, or \\\\u")
    else:
        return entries[0].value if len(entries) == 1 else text
    return text.encode(errors="replace").decode()


def _defaults(props: Mapping[str, str], findings: Findings) -> dict[str, str]:
    absent = {key: value for key, value in DEBEZIUM_DEFAULTS.items() if key not in props}
    for key, value in absent.items():
        findings.warn_key(key, f"not set, so it is '{value}' as in Debezium's image")
    return absent
