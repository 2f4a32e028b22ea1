"""Config providers: values stored outside the file, written `${provider:[path:]key}`.

The three providers of Kafka are known by their Java class names. Text with an unknown provider
stays unchanged, as in Kafka. A missing file or key is an error here; Kafka would use the text of
the placeholder as the value. Values never appear in the log or in errors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import javaproperties

from sparkmirror.config.config_def import COMMA, BadValue, parse_list
from sparkmirror.config.files.properties import parse_entries
from sparkmirror.config.files.regular_files import read_regular_file
from sparkmirror.config.findings import Findings
from sparkmirror.config.masking import remember_provided, remember_secrets
from sparkmirror.config.patterns.java_regex import compile_part

CONFIG_PROVIDERS = "config.providers"
JAVA_PACKAGE = "org.apache.kafka.common.config.provider."
ALLOWED_PATHS = "allowed.paths"
ALLOWLIST_PATTERN = "allowlist.pattern"


class Provider(Protocol):
    """Finds one value. Called for each placeholder, in the worker process; may read files."""

    def find(self, path: str, key: str) -> str:
        """The value of `key` in `path` ("" when the placeholder has none). Raises BadValue."""
        ...


class FileConfigProvider:
    """`${file:/path/to.properties:key}`: one key of a properties file in UTF-8."""

    def __init__(self, params: Mapping[str, str]) -> None:
        self._allowed = _allowed_paths(params)
        self._files: dict[Path, dict[str, str]] = {}

    def find(self, path: str, key: str) -> str:
        file = _checked_path(path, self._allowed)
        if file not in self._files:
            self._files[file] = _load_text_properties(file)
        if key not in self._files[file]:
            raise BadValue(f"{file} has no key '{key}'", "add the key to that file")
        return self._files[file][key]


class DirectoryConfigProvider:
    """`${directory:/path:name}`: the whole content of one file of a directory."""

    def __init__(self, params: Mapping[str, str]) -> None:
        self._allowed = _allowed_paths(params)

    def find(self, path: str, key: str) -> str:
        directory = _checked_path(path, self._allowed)
        if not directory.is_dir():
            raise BadValue(f"{directory} is not a directory", "check the path")
        if Path(key).name != key:
            raise BadValue(f"'{key}' is not a file name", "name a file in that directory")
        return _read_text(directory / key)


class EnvVarConfigProvider:
    """`${env:NAME}`: an environment variable, if its name passes `allowlist.pattern`."""

    def __init__(self, params: Mapping[str, str], environ: Mapping[str, str]) -> None:
        # Java's Pattern.asPredicate, which Kafka uses here, finds a part of the name.
        self._allowed = compile_part(params.get(ALLOWLIST_PATTERN, ".*"))
        self._environ = environ

    def find(self, path: str, key: str) -> str:
        if path:
            raise BadValue("environment variables have no path", "write ${provider:NAME}")
        if not self._allowed.fullmatch(key):
            raise BadValue(f"{ALLOWLIST_PATTERN} does not allow '{key}'", "change the pattern")
        if key not in self._environ:
            raise BadValue(f"the environment has no variable '{key}'", "set the variable")
        return self._environ[key]


def resolve(
    props: Mapping[str, str],
    providers: Mapping[str, Provider] | None = None,
    findings: Findings | None = None,
) -> dict[str, str]:
    """`props` with every placeholder of a known provider replaced by its value.

    Without `providers`, those that `props` itself configures.

    Raises:
        ConfigErrors: only when the caller gives no `findings` to collect into.
    """
    found = Findings() if findings is None else findings
    known = load_providers(props, found) if providers is None else providers
    values = {key: _resolve_one(key, value, known, found) for key, value in props.items()}
    remember_secrets(values)
    if findings is None:
        found.raise_errors()
    return values


def split_placeholders(value: str, names: Collection[str]) -> tuple[list[str], str]:
    """The placeholders of the named providers, and the text around them."""
    parts = list(_parts(value))
    found = [part for part in parts if _provider_name(part) in names]
    return found, "".join(part for part in parts if part not in found)


def load_providers(
    props: Mapping[str, str], findings: Findings, environ: Mapping[str, str] | None = None
) -> dict[str, Provider]:
    """The providers that `config.providers` names, each made from its class and parameters.

    `${env:NAME}` keeps reading the environment of this moment: a worker removes variables later.
    """
    makers = _makers(dict(os.environ) if environ is None else environ)
    providers: dict[str, Provider] = {}
    for name in _provider_names(props, findings):
        class_key = f"{CONFIG_PROVIDERS}.{name}.class"
        given = props.get(class_key, "").strip()
        make = makers.get(given)
        if make is None:
            reason = "is required and not set" if not given else "unknown config provider"
            findings.error(class_key, given or None, reason, f"use one of {_class_names()}")
            continue
        _make(name, make, props, providers, findings)
    return providers


def _make(
    name: str,
    make: Callable[[Mapping[str, str]], Provider],
    props: Mapping[str, str],
    providers: dict[str, Provider],
    findings: Findings,
) -> None:
    prefix = f"{CONFIG_PROVIDERS}.{name}.param."
    params = {k.removeprefix(prefix): v for k, v in props.items() if k.startswith(prefix)}
    try:
        providers[name] = make(params)
    except BadValue as bad:
        key = f"{prefix}{ALLOWLIST_PATTERN if ALLOWLIST_PATTERN in params else ALLOWED_PATHS}"
        findings.error(key, props[key], bad.reason, bad.remedy)


def _makers(environ: Mapping[str, str]) -> dict[str, Callable[[Mapping[str, str]], Provider]]:
    return {
        f"{JAVA_PACKAGE}FileConfigProvider": FileConfigProvider,
        f"{JAVA_PACKAGE}DirectoryConfigProvider": DirectoryConfigProvider,
        f"{JAVA_PACKAGE}EnvVarConfigProvider": lambda params: EnvVarConfigProvider(params, environ),
    }


def _class_names() -> str:
    return ", ".join(_makers({}))


def _provider_names(props: Mapping[str, str], findings: Findings) -> Sequence[str]:
    text = props.get(CONFIG_PROVIDERS, "")
    try:
        return parse_list(text.strip())
    except BadValue as bad:
        findings.error(CONFIG_PROVIDERS, text, bad.reason, bad.remedy)
        return ()


def _resolve_one(
    key: str, value: str, providers: Mapping[str, Provider], findings: Findings
) -> str:
    provided: set[str] = set()

    def find(placeholder: str) -> str:
        name = _provider_name(placeholder)
        provider = None if name is None else providers.get(name)
        if provider is None:
            return placeholder
        rest = placeholder[2:-1].partition(":")[2]
        path, _, inner = rest.partition(":") if ":" in rest else ("", "", rest)
        try:
            found = provider.find(path, inner)
        except BadValue as bad:
            findings.error(key, value, f"{placeholder}: {bad.reason}", bad.remedy)
            return placeholder
        provided.add(found)
        remember_provided(found)
        return found

    parts = _parts(value)
    resolved = "".join(find(part) if part.startswith("${") else part for part in parts)
    if provided:
        findings.note_provided(key, value, _shown_forms(provided, resolved))
    return resolved


def _provider_name(part: str) -> str | None:
    """The provider of a part of a value; None if the part is text."""
    name, colon, _ = part[2:-1].partition(":")
    return name if colon and part.startswith("${") and part.endswith("}") else None


def _shown_forms(provided: Collection[str], resolved: str) -> frozenset[str]:
    """The forms in which messages may show it: all of it, each provided value, list elements."""
    texts = {resolved, *provided}
    return frozenset(texts | {part for text in texts for part in COMMA.split(text)})


def _parts(value: str) -> Iterator[str]:
    """Placeholders, and the text between them.

    Kafka's expression, ${([^}]*?):(([^}]*?):)?([^}]*?)}, takes very long for some values.
    """
    at = 0
    while (start := value.find("${", at)) >= 0 and (end := value.find("}", start)) >= 0:
        yield value[at:start]
        yield value[start : end + 1]
        at = end + 1
    yield value[at:]


def _allowed_paths(params: Mapping[str, str]) -> tuple[Path, ...] | None:
    """The directories and files that may be read; None (no `allowed.paths`): all."""
    if not params.get(ALLOWED_PATHS, "").strip():
        return None
    paths = tuple(Path(item) for item in parse_list(params[ALLOWED_PATHS].strip()))
    for path in paths:
        if not path.is_absolute() or not path.exists():
            raise BadValue(f"'{path}' is not an existing absolute path", "use existing paths")
    return tuple(Path(os.path.normpath(path)) for path in paths)


def _checked_path(path: str, allowed: tuple[Path, ...] | None) -> Path:
    if not path:
        raise BadValue("the placeholder has no path", "write ${provider:path:key}")
    normal = Path(os.path.normpath(path))
    if allowed is not None and not any(normal.is_relative_to(root) for root in allowed):
        raise BadValue(f"{ALLOWED_PATHS} does not allow {normal}", "add its directory there")
    return normal


def _load_text_properties(file: Path) -> dict[str, str]:
    try:
        return {entry.key: entry.value for entry in parse_entries(_read_text(file))}
    except javaproperties.InvalidUEscapeError as error:
        raise BadValue(f"{file}: malformed escape: {error}", "correct that file") from None


def _read_text(file: Path) -> str:
    try:
        return read_regular_file(file).decode("utf-8")
    except UnicodeDecodeError:
        raise BadValue(f"{file} is not text in UTF-8", "check the path") from None
    except OSError as error:
        raise BadValue(f"{file} cannot be read: {error.strerror}", "check path and mode") from None
