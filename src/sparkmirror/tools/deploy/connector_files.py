"""The three files of one source cluster: the settings of its connectors, as sent.

Runs on: any machine. Errors of all files are reported at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparkmirror.config.checks.connector_advice import KeyAdvice, advise_connector
from sparkmirror.config.keys.classes import MIRROR
from sparkmirror.config.keys.connector_keys import MIRROR_KEYS
from sparkmirror.config.keys.plugins import CONNECTOR_CLASS, connector_class
from sparkmirror.errors import ConfigError, ConfigErrors, MirrorError
from sparkmirror.foreign_json import read_json_object
from sparkmirror.rest.entities.request_bodies import parse_config
from sparkmirror.rest.exception_mapper import JsonError

# In the order of sending.
CLASSES = {
    "cpc": f"{MIRROR}MirrorCheckpointConnector",
    "hbc": f"{MIRROR}MirrorHeartbeatConnector",
    "msc": f"{MIRROR}MirrorSourceConnector",
}
NAME = "name"
SOURCE_ALIAS = MIRROR_KEYS["source.cluster.alias"].name


class MissingFiles(MirrorError):
    """Missing files, and the errors of the others."""


@dataclass(frozen=True, slots=True)
class ConnectorFile:
    """A file that can be sent: `body` has its bytes, `config` the settings in them.

    `warnings` are about settings that work, but perhaps not as the user expects.
    """

    path: Path
    name: str
    plugin: str
    body: bytes = field(repr=False)
    config: Mapping[str, str | None] = field(repr=False)
    warnings: tuple[str, ...] = ()


def file_paths(folder: Path, cluster: str) -> dict[str, Path]:
    """The paths of the three files, by kind of connector."""
    return {kind: folder / f"mm2-{kind}-{cluster}.json" for kind in CLASSES}


def read_files(folder: Path, cluster: str, *, force: bool = False) -> list[ConnectorFile]:
    """All three files; with `force`, a key that looks misspelt only gets a warning.

    Raises:
        MissingFiles: some do not exist.
        ConfigErrors: some cannot be sent.
    """
    paths = file_paths(folder, cluster)
    missing = [path for path in paths.values() if not path.is_file()]
    files, errors = _read(paths, set(missing), force)
    if missing:
        lines = [f"{path}: there is no such file" for path in missing]
        raise MissingFiles("\n".join([*lines, *map(str, errors)]))
    errors += _same_names(files)
    if errors:
        raise ConfigErrors(errors)
    return files


def read_names(folder: Path, cluster: str) -> list[str]:
    """The names of the three connectors; without a file, the name that the file would have.

    Raises:
        ConfigErrors: a file exists, but contains no name.
    """
    names: list[str] = []
    errors: list[ConfigError] = []
    for path in file_paths(folder, cluster).values():
        try:
            names.append(_name(path, read_json_object(path)[1]) if path.is_file() else path.stem)
        except ConfigError as error:
            errors.append(error)
    if errors:
        raise ConfigErrors(errors)
    return names


def read_aliases(folder: Path, cluster: str) -> set[str]:
    """The aliases of the source clusters in the files; without files, the name in their names."""
    paths = [path for path in file_paths(folder, cluster).values() if path.is_file()]
    found = {read_json_object(path)[1].get(SOURCE_ALIAS) for path in paths}
    return {alias for alias in found if isinstance(alias, str)} or {cluster}


def _read(
    paths: Mapping[str, Path], missing: set[Path], force: bool
) -> tuple[list[ConnectorFile], list[ConfigError]]:
    files: list[ConnectorFile] = []
    errors: list[ConfigError] = []
    for kind, path in paths.items():
        if path in missing:
            continue
        try:
            files.append(_parse(path, CLASSES[kind], force))
        except ConfigErrors as found:
            errors += found.errors
    return files, errors


def _parse(path: Path, wanted: str, force: bool) -> ConnectorFile:
    try:
        text, members = read_json_object(path)
    except ConfigError as error:
        raise ConfigErrors([error]) from error
    body = text.encode()
    errors = list(_mistakes(path, members, wanted))
    if errors:
        raise ConfigErrors(errors)
    config = _config(path, body)
    advice = list(advise_connector(config))
    typos = [each for each in advice if each.meant and not force]
    if typos:
        raise ConfigErrors([_typo(path, each) for each in typos])
    warnings = [f"{path}: {each.key}: {each.text}" for each in advice]
    warnings += _other_name(path, members[NAME])
    return ConnectorFile(
        path, members[NAME], members[CONNECTOR_CLASS], body, config, tuple(warnings)
    )


def _typo(path: Path, advice: KeyAdvice) -> ConfigError:
    remedy = f"write {advice.meant}, or deploy with --force to ignore the key"
    return ConfigError(advice.key, None, "unknown key", remedy, str(path))


def _other_name(path: Path, name: str) -> list[str]:
    if name == path.stem:
        return []
    text = (
        f"{path}: name={name}: differs from the file's name; undeploy and status find the "
        f"connector only while this file exists with this name, so use {path.stem}"
    )
    return [text]


def _config(path: Path, body: bytes) -> Mapping[str, str | None]:
    try:
        return parse_config(body)
    except JsonError as error:
        reason = f"not JSON that a worker accepts: {str(error).splitlines()[0]}"
        raise ConfigErrors([ConfigError("", None, reason, where=str(path))]) from error


def _mistakes(path: Path, members: Mapping[str, Any], wanted: str) -> Iterator[ConfigError]:
    where = str(path)
    if isinstance(members.get("config"), dict):
        remedy = "use its content: the file has the settings themselves"
        yield ConfigError("config", None, "this is the body of POST /connectors", remedy, where)
        return
    try:
        _name(path, members)
    except ConfigError as error:
        yield error
    given = members.get(CONNECTOR_CLASS)
    if not isinstance(given, str) or connector_class(given) != wanted:
        reason = "missing" if given is None else "another connector's file has this name"
        yield ConfigError(CONNECTOR_CLASS, given, reason, f"set it to {wanted}", where)
    for key, value in members.items():
        if isinstance(value, dict | list):
            yield ConfigError(
                key, None, "not text, a number or a boolean", "write it as text", where
            )


def _name(path: Path, members: Mapping[str, Any]) -> str:
    name = members.get(NAME)
    if isinstance(name, str) and name.strip():
        return name
    reason = "missing" if name is None else "no name"
    raise ConfigError(NAME, name, reason, f"for example {path.stem}", str(path))


def _same_names(files: list[ConnectorFile]) -> list[ConfigError]:
    counts = Counter(file.name for file in files)
    reason, remedy = "another of the three files has the same name", "give each connector its own"
    return [
        ConfigError(NAME, file.name, reason, remedy, str(file.path))
        for file in files
        if counts[file.name] > 1
    ]
