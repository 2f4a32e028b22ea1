"""Turns values of the resource into settings of the files: values, placeholders, secrets.

No password gets into a file. Strimzi's `${strimzisecrets:...}` and the resource's
references to Secrets become placeholders of this program's config providers, which read mounted
files; a password in the resource itself is left out, and the user must put it into a Secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sparkmirror.config.config_def import BadValue
from sparkmirror.config.files.providers import (
    ALLOWED_PATHS,
    ALLOWLIST_PATTERN,
    CONFIG_PROVIDERS,
    JAVA_PACKAGE,
)
from sparkmirror.config.masking import is_secret, remember
from sparkmirror.config.security.jaas import parse_jaas
from sparkmirror.config.security.sasl import JAAS
from sparkmirror.tools.convert.ledger import Fate, Ledger, Node, members_of

CONFIG_FOLDER = "/etc/sparkmirror"
SECRETS_FOLDER = f"{CONFIG_FOLDER}/secrets"
# Where Strimzi mounts the volumes of spec.externalConfiguration.
EXTERNAL_FOLDER = "/opt/kafka/external-configuration"
SECRET_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
SECRET_KEY = re.compile(r"[A-Za-z0-9._-]{1,253}")
PLACEHOLDER = re.compile(r"\$\{([^}:]*):([^}]*)\}")
URL = re.compile(r"https?://")

FILE, DIRECTORY, ENVIRONMENT, SECRET = "file", "directory", "env", "secret"
JAVA_CLASSES = {
    DIRECTORY: f"{JAVA_PACKAGE}DirectoryConfigProvider",
    ENVIRONMENT: f"{JAVA_PACKAGE}EnvVarConfigProvider",
    FILE: f"{JAVA_PACKAGE}FileConfigProvider",
}
# The providers of the resource by class, each with its kind here.
KNOWN_CLASSES = {name: kind for kind, name in JAVA_CLASSES.items()} | {
    "io.strimzi.kafka.KubernetesSecretConfigProvider": SECRET,
    "io.strimzi.kafka.EnvVarConfigProvider": ENVIRONMENT,
}
# Providers that Strimzi always adds; before 0.46 only `file`.
BUILT_IN = {
    "strimzidir": DIRECTORY,
    "strimzienv": ENVIRONMENT,
    "strimzifile": FILE,
    "strimzisecrets": SECRET,
    "file": FILE,
}

UNLISTED = Fate(
    f"{CONFIG_PROVIDERS} does not name this provider: it has no effect in Strimzi either", "nothing"
)
LIMITED = Fate(
    "providers are limited to what the pod mounts and to its own variables",
    f"change {CONFIG_PROVIDERS}.* in the written file if that is not enough",
)
UNKNOWN_PROVIDER = Fate(
    "unknown config provider: its placeholders stay unresolved",
    f"use one of {', '.join(JAVA_CLASSES.values())}",
)


class FileSetting(NamedTuple):
    """A value for a file, and its path in the resource; "" if it does not come from there."""

    value: str
    path: str = ""


FileSettings = dict[str, FileSetting]


@dataclass(slots=True)
class SecretFiles:
    """The keys of Secrets that the pod needs as files."""

    keys: dict[str, dict[str, None]] = field(default_factory=dict)

    def path(self, secret: str, key: str) -> str:
        """The path of the key in the pod."""
        self.keys.setdefault(secret, {}).setdefault(key)
        return f"{SECRETS_FOLDER}/{secret}/{key}"

    def placeholder(self, secret: str, key: str) -> str:
        """The placeholder for the content of the key."""
        self.path(secret, key)
        return f"${{{DIRECTORY}:{SECRETS_FOLDER}/{secret}:{key}}}"


@dataclass(slots=True)
class Values:
    """Turns values of the resource into settings.

    `known` has the config providers that placeholders of the resource may name.
    """

    name: str
    namespace: str
    ledger: Ledger
    secrets: SecretFiles = field(default_factory=SecretFiles)
    known: dict[str, str] = field(default_factory=lambda: dict(BUILT_IN))

    @property
    def own_secret(self) -> str:
        """The Secret for passwords that are in the resource itself."""
        return f"{self.name}-sparkmirror-secrets"

    def setting(self, node: Node, key: str, label: str) -> FileSetting:
        """The value of `key`; `label` distinguishes it from the same key in other places."""
        text = PLACEHOLDER.sub(lambda found: self._translated(found, node.path), node.text())
        if holds_secret(key, text):
            remember(text)
            text = self._moved(node.path, f"{label}.{key}")
        return FileSetting(text, node.path)

    def config(self, node: Node | None, label: str) -> FileSettings:
        """All settings of a `config` mapping."""
        return {key: self.setting(member, key, label) for key, member in members_of(node).items()}

    def secret_key(self, node: Node | None, field_: str) -> tuple[str, str]:
        """The Secret and the key that a reference such as `passwordSecret` names."""
        if node is None:
            return "", ""
        name = node.need("secretName", "name a Secret")
        key = node.need(field_, "name a key of the Secret")
        return (
            name.matching(SECRET_NAME, "the name of a Secret") if name else "",
            key.matching(SECRET_KEY, "a key of a Secret") if key else "",
        )

    def learn_providers(self, config: Node | None) -> None:
        """Read the config providers of the resource's worker."""
        members = members_of(config)
        listed = members.get(CONFIG_PROVIDERS)
        names = [] if listed is None else [name.strip() for name in listed.text().split(",")]
        for key, member in members.items():
            if key.startswith(f"{CONFIG_PROVIDERS}."):
                name, _, part = key.removeprefix(f"{CONFIG_PROVIDERS}.").partition(".")
                self._learn(name if name in names else None, part, member)

    def _learn(self, name: str | None, part: str, node: Node) -> None:
        text = node.text()
        kind = KNOWN_CLASSES.get(text)
        if name is None:
            note = UNLISTED
        elif part != "class":
            note = LIMITED
        elif kind is None:
            note = UNKNOWN_PROVIDER
        else:
            self.known[name] = kind
            return
        self.ledger.note(node.path, note.reason, note.instead)

    def _translated(self, found: re.Match[str], path: str) -> str:
        kind = self.known.get(found[1])
        if kind is None:
            self.ledger.note(
                path,
                f"unknown config provider '{found[1]}': the placeholder stays",
                f"write ${{{DIRECTORY}:/path:file}} or ${{{ENVIRONMENT}:NAME}} in the written file",
            )
            return found[0]
        if kind == SECRET:
            return self._of_secret(found, path)
        return f"${{{kind}:{found[2]}}}"

    def _of_secret(self, found: re.Match[str], path: str) -> str:
        """`namespace/name:key`, which is mounted here; a pod mounts only from its own namespace."""
        where, _, key = found[2].partition(":")
        namespace, _, secret = where.rpartition("/")
        names = [secret, namespace] if namespace else [secret]
        if not all(map(SECRET_NAME.fullmatch, names)) or not SECRET_KEY.fullmatch(key):
            reason = "the placeholder names no Secret and key"
            self.ledger.note(path, reason, "write it as ${strimzisecrets:namespace/name:key}")
            return found[0]
        if namespace and namespace != self.namespace:
            reason = f"a pod cannot mount a Secret of another namespace ({namespace})"
            self.ledger.note(path, reason, f"copy the Secret {secret} to the namespace of the pod")
        return self.secrets.placeholder(secret, key)

    def _moved(self, path: str, label: str) -> str:
        key = re.sub(r"[^A-Za-z0-9._-]", "_", label)
        self.ledger.note(
            path,
            "contains a password or key, which does not belong in a ConfigMap: the file reads it "
            f"from the key {key} of the Secret {self.own_secret}",
            f"kubectl create secret generic {self.own_secret} --from-file={key}=FILE",
        )
        return self.secrets.placeholder(self.own_secret, key)


def holds_secret(key: str, value: str) -> bool:
    """Whether the value is or contains a password, and not a placeholder for it."""
    if not is_secret(key) or not value:
        return False
    if not key.endswith(JAAS):
        return "${" not in value
    try:
        options = parse_jaas(value).options
    except BadValue:
        return True
    return any(
        is_secret(name) and given and "${" not in given and not URL.match(given)
        for name, given in options.items()
    )


def quoted(text: str) -> str:
    """The value of an option of a login module."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def provider_settings(
    values: Iterable[str], folders: Sequence[str], variables: Sequence[str]
) -> FileSettings:
    """The config providers that `values` need, limited to these folders and variables."""
    used = {found[1] for value in values for found in PLACEHOLDER.finditer(value)}
    names = [name for name in JAVA_CLASSES if name in used]
    paths = (ALLOWED_PATHS, ",".join(folders))
    names_only = (ALLOWLIST_PATTERN, f"^({'|'.join(variables)})$" if variables else "")
    limits = {ENVIRONMENT: names_only, DIRECTORY: paths, FILE: paths}
    settings = {CONFIG_PROVIDERS: FileSetting(",".join(names))} if names else {}
    for name in names:
        prefix = f"{CONFIG_PROVIDERS}.{name}"
        param, limit = limits[name]
        settings[f"{prefix}.class"] = FileSetting(JAVA_CLASSES[name])
        if limit:
            settings[f"{prefix}.param.{param}"] = FileSetting(limit)
    return settings


def properties_text(sections: Mapping[str, FileSettings], head: str = "") -> str:
    """A properties file: sections, each below its comment."""
    parts = [f"# {line}".rstrip() for line in head.splitlines()]
    for title, settings in sections.items():
        if settings:
            parts += ["", f"# {title}"]
            parts += [property_line(key, setting.value) for key, setting in settings.items()]
    return "\n".join(parts) + "\n"


def property_line(key: str, value: str) -> str:
    """One line, with only the escapes that Java's format needs."""
    name = _escaped(re.sub(r"[\\:= #!]", lambda found: "\\" + found[0], key))
    text = _escaped(value.replace("\\", "\\\\"))
    return f"{name}=\\{text}" if text.startswith(" ") else f"{name}={text}"


def _escaped(text: str) -> str:
    """Escape line ends and non-ASCII characters; in UTF-16 units, as in Java."""
    plain = text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t").replace("\f", "\\f")
    return "".join(char if " " <= char <= "~" else _unicode(char) for char in plain)


def _unicode(char: str) -> str:
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
