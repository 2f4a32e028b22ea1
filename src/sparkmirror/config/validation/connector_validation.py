"""The response of `PUT /connector-plugins/<connector>/config/validate`: every key with its errors.

Connect's own checks come first, in its words. Features that this version lacks are rejected in the
same way, before a connector exists; anything else that prevents a start shows in the connector's
status, as in Connect. Mirrors: org.apache.kafka.connect.runtime.AbstractHerder (4.3).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping

from sparkmirror.config.checks.plugin_modules import NOT_LISTED
from sparkmirror.config.clients import with_prefix
from sparkmirror.config.config_def import REQUIRED, BadValue, Definition, Key, Secret
from sparkmirror.config.connector_spec import NULL_VALUE, PRODUCER_OVERRIDE, collect_connector
from sparkmirror.config.files.providers import resolve
from sparkmirror.config.findings import Findings
from sparkmirror.config.keys.client_keys import PRODUCER_KEYS
from sparkmirror.config.keys.converter_keys import CONVERTER_DEFINITIONS, CONVERTER_TYPE
from sparkmirror.config.keys.not_yet import NOT_YET
from sparkmirror.config.keys.plugins import (
    CONNECTOR_CLASS,
    UnknownConnectorClass,
    UnknownVersion,
    check_plugin,
    check_version,
    require_class,
)
from sparkmirror.config.masking import HIDDEN, is_secret, mask_words, provisional
from sparkmirror.config.security.allowed_access import NOT_ALLOWED
from sparkmirror.config.validation.class_hints import OF_CONNECTORS, class_hints
from sparkmirror.config.validation.definitions import (
    BASE_KEYS,
    OWN_KEYS,
    ConfigInfo,
    definition,
    merged_keys,
    simple_name,
    text_of,
)
from sparkmirror.config.validation.joint_checks import (
    Checked,
    Props,
    check_connector,
    check_exactly_once,
)
from sparkmirror.config.validation.validators import CONVERTER_KEYS, check_value, parse_java
from sparkmirror.config.worker.worker_file import WorkerFile

log = logging.getLogger(__name__)

PLUGIN_VERSION = "connector.plugin.version"
INVALID = "Connector configuration is invalid and contains the following"
SEE_ALSO = (
    "You can also find the above list of errors at the endpoint "
    "`/connector-plugins/{connectorType}/config/validate`"
)
REFUSED = frozenset((*(row.reason for row in NOT_YET if row.refused), *NOT_ALLOWED, NOT_LISTED))


def validate_connector(plugin: str | None, props: Props, worker: WorkerFile) -> ConfigInfo:
    """All keys of the connector that `props` are for, with their values and errors.

    `plugin` is the one that the request names; None when a connector is created.

    Raises:
        WrongPlugin, NoConnectorClass, UnknownConnectorClass: validation cannot continue.
    """
    with provisional() as hide:
        try:
            infos = _validate(plugin, props, worker)
        except UnknownConnectorClass:
            log.warning("connector rejected: %s", OF_CONNECTORS)
            raise
        errors = {row["value"]["name"]: row["value"]["errors"] for row in infos["configs"]}
        for hint in class_hints(errors):
            log.warning("connector settings rejected: %s", hint)
        for row in infos["configs"]:
            row["value"]["errors"] = [hide(text) for text in row["value"]["errors"]]
        return infos


def _validate(plugin: str | None, props: Props, worker: WorkerFile) -> ConfigInfo:
    if plugin is not None:
        check_plugin(plugin, props)
    kind = simple_name(require_class(props))
    known, unknown = _connector_values(kind, props, worker)
    overrides = _overrides(props, worker)
    if not _count((*known.values(), *unknown)):
        unknown += _refused(props, worker, known | overrides)
    keys = merged_keys(BASE_KEYS, OWN_KEYS[kind])
    rows = [_row(None, value) for value in unknown]
    rows += [_row(definition(key), known[key.name]) for key in keys]
    rows += [_row(_override_definition(name), value) for name, value in overrides.items()]
    rows += _converter_rows(props, known)
    return {
        "name": props[CONNECTOR_CLASS],
        "error_count": sum(len(row["value"]["errors"]) for row in rows),
        "groups": _groups(rows),
        "configs": rows,
    }


def add_errors(infos: ConfigInfo, errors: Mapping[str, str]) -> None:
    """Add errors of other checks, by key."""
    rows = {row["value"]["name"]: row for row in infos["configs"]}
    for key, text in errors.items():
        if key not in rows:
            infos["configs"].insert(0, _row(None, Checked(key)))
            rows[key] = infos["configs"][0]
        rows[key]["value"]["errors"].append(text)
        infos["error_count"] += 1


def error_summary(infos: ConfigInfo) -> str | None:
    """The error for creating a connector with these infos; None if there is none."""
    if not infos["error_count"]:
        return None
    lines = [text for row in infos["configs"] for text in row["value"]["errors"]]
    head = f"{INVALID} {infos['error_count']} error(s):"
    return "\n".join((head, *lines, SEE_ALSO))


def _groups(rows: Iterable[ConfigInfo]) -> list[str]:
    shapes = (row["definition"] for row in rows)
    return list(dict.fromkeys(shape["group"] for shape in shapes if shape and shape["group"]))


def _row(shape: ConfigInfo | None, value: Checked) -> ConfigInfo:
    return {"definition": shape, "value": value.info()}


def _count(values: Iterable[Checked]) -> int:
    return sum(len(value.errors) for value in values)


def _connector_values(
    kind: str, props: Props, worker: WorkerFile
) -> tuple[dict[str, Checked], list[Checked]]:
    """Values of the defined keys, and of other keys with an error.

    Connect checks its own keys, then the connector checks its own: for a key that both have, the
    connector's result wins.
    """
    findings = Findings()
    given = {key: value for key, value in props.items() if value is not None}
    resolved: Props = dict(props) | resolve(given, worker.providers, findings)
    base = _check(BASE_KEYS, resolved)
    check_exactly_once(kind, base, resolved, enabled=_exactly_once(worker))
    unknown = [_null(key, base) for key, value in props.items() if value is None]
    own = _check(OWN_KEYS[kind], resolved)
    check_connector(kind, own, resolved)
    known = base | own
    _check_version(known, props)
    for name in CONVERTER_KEYS:
        known[f"{name}.plugin.version"].visible = known[name].value is not None
    _hide(known, props, resolved, findings)
    for error in findings.errors:
        known.setdefault(error.key, Checked(error.key)).errors.append(error.reason)
    defined = {key.name for key in merged_keys(BASE_KEYS, OWN_KEYS[kind])}
    extra = [value for value in unknown if value is not None and value.name not in defined]
    extra += [known.pop(name) for name in list(known) if name not in defined]
    return known, extra


def _check_version(known: Mapping[str, Checked], props: Props) -> None:
    try:
        check_version(require_class(props), props.get(PLUGIN_VERSION))
    except UnknownVersion as wrong:
        for name in (CONNECTOR_CLASS, PLUGIN_VERSION):
            known[name].errors.append(str(wrong))


def _exactly_once(worker: WorkerFile) -> bool:
    return worker.worker.exactly_once_source_support == "enabled"


def _null(key: str, base: dict[str, Checked]) -> Checked | None:
    """Record that `key` is null; as a separate value if Connect does not know the key."""
    if key in base:
        base[key].errors.append(NULL_VALUE)
        return None
    return Checked(key, None, [NULL_VALUE])


def _check(keys: Definition, props: Props) -> dict[str, Checked]:
    return {key.name: _check_one(key, props) for key in keys}


def _check_one(key: Key, props: Props) -> Checked:
    checked = Checked(key.name)
    value = None
    if key.name in props:
        try:
            value = parse_java(key, props[key.name])
        except BadValue as bad:
            checked.errors.append(bad.reason)
    elif key.default is REQUIRED:
        checked.errors.append(
            f'Missing required configuration "{key.name}" which has no default value.'
        )
    else:
        value = key.default
    if wrong := check_value(key, value):
        checked.errors.append(wrong)
    checked.value = HIDDEN if isinstance(value, Secret) else text_of(value)
    return checked


def _hide(known: Mapping[str, Checked], props: Props, resolved: Props, findings: Findings) -> None:
    """Show placeholders instead of their values."""
    for name, value in known.items():
        if props.get(name) != resolved.get(name):
            value.value = props[name]
            provided = findings.origin(name).provided
            value.errors = [mask_words(text, provided) for text in value.errors]


def _refused(props: Props, worker: WorkerFile, known: Mapping[str, Checked]) -> list[Checked]:
    """Add errors for features that this version lacks; returns values of unknown keys."""
    findings = Findings()
    collect_connector(props, worker, findings)
    others: dict[str, Checked] = {}
    for error in findings.errors:
        if error.reason in REFUSED:
            value = known.get(error.key) or others.setdefault(
                error.key, Checked(error.key, props.get(error.key))
            )
            value.errors.append(f"{error.reason}; {error.remedy}")
    return list(others.values())


def _overrides(props: Props, worker: WorkerFile) -> dict[str, Checked]:
    """The producer settings that the connector overrides, by full name."""
    given = {key: value for key, value in props.items() if value is not None}
    found = {}
    for name, key in with_prefix(given, PRODUCER_OVERRIDE).items():
        found[key] = Checked(key, HIDDEN if is_secret(key) else given[key])
        if not worker.override.allows(name):
            found[key].errors.append(worker.override.refusal(name))
    return found


def _override_definition(key: str) -> ConfigInfo | None:
    name = key.removeprefix(PRODUCER_OVERRIDE)
    if name not in PRODUCER_KEYS:
        return None
    return definition(PRODUCER_KEYS[name], PRODUCER_OVERRIDE)


def _converter_rows(props: Props, known: Mapping[str, Checked]) -> Iterator[ConfigInfo]:
    """The settings of the converters that the connector names."""
    for name in CONVERTER_KEYS:
        if props.get(name) is None or known[name].errors:
            continue
        prefix = f"{name}."
        given: dict[str, str | None] = {CONVERTER_TYPE.name: name.partition(".")[0]}
        given |= {key.removeprefix(prefix): props[key] for key in props if key.startswith(prefix)}
        for key in CONVERTER_DEFINITIONS.get(known[name].value or "", ()):
            value = _check_one(key, given)
            value.name = f"{prefix}{key.name}"
            yield _row(definition(key, prefix), value)
