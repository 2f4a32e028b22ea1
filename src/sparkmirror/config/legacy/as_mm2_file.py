"""MirrorMaker 1's settings as an mm2.properties: `sparkmirror legacy --to-mm2`.

Passwords are not printed: the file reads them from MirrorMaker 1's files, with a config provider. A
value that consists of placeholders of the files' own providers is printed unchanged.
"""

from __future__ import annotations

from pathlib import Path

import javaproperties

from sparkmirror.config.config_def import COMMA
from sparkmirror.config.files.providers import CONFIG_PROVIDERS, split_placeholders
from sparkmirror.config.legacy.mirror_maker_1 import LegacyConfig
from sparkmirror.config.masking import is_secret

PROVIDER = "mm1"
PROVIDER_CLASS = "org.apache.kafka.common.config.provider.FileConfigProvider"
MIXED = (
    "has placeholders and other text: the printed file reads both from {file}, and placeholders in "
    "a config provider's value are not resolved; put the whole value where a provider finds it"
)
NOTES = (
    "MirrorMaker 2 and `sparkmirror run` do not read the consumer group: without stored positions",
    "they begin at auto.offset.reset. To continue where `sparkmirror legacy` stopped, add",
    "target.offset.storage.topic with the name that its log shows at the start.",
    "Topics whose names begin with __ or a dot are not copied, and those that end in heartbeats",
    "are renamed: that is MirrorMaker 2's IdentityReplicationPolicy.",
    "Records keep their partition number; MirrorMaker 1 places them by their keys.",
)


def shown_settings(config: LegacyConfig) -> dict[str, str]:
    """The settings in the order of the file, with a placeholder for each password."""
    shown = {name: _shown(config, name, value) for name, value in config.mm2_props.items()}
    if shown != config.mm2_props:
        known = shown.get(CONFIG_PROVIDERS)
        name = _free_name(config)
        shown[CONFIG_PROVIDERS] = f"{known}, {name}" if known else name
        shown[f"{CONFIG_PROVIDERS}.{name}.class"] = PROVIDER_CLASS
    return shown


def mm2_text(config: LegacyConfig) -> str:
    """The file, without a line end after its last line."""
    lines = ["# Made by sparkmirror legacy --to-mm2.", *(f"# {note}" for note in NOTES)]
    for name, value in shown_settings(config).items():
        lines.append(javaproperties.join_key_value(name, value, separator=" = "))
    return "\n".join(lines)


def shown_warnings(config: LegacyConfig) -> tuple[str, ...]:
    """The warnings of the configuration, and one for each value that mixes in placeholders."""
    mixed = [
        f"{place.where}: {place.key}: {MIXED.format(file=place.where)}"
        for name, place in config.places.items()
        if _is_hidden(config, name) and _split(config, name)[0]
    ]
    return (*config.warnings, *mixed)


def _shown(config: LegacyConfig, name: str, value: str) -> str:
    if not _is_hidden(config, name):
        return value
    place = config.places[name]
    return f"${{{_free_name(config)}:{Path(place.where).resolve()}:{place.key}}}"


def _is_hidden(config: LegacyConfig, name: str) -> bool:
    place = config.places.get(name)
    if place is None or not is_secret(place.key):
        return False
    placeholders, others = _split(config, name)
    return not placeholders or bool(others.strip())


def _split(config: LegacyConfig, name: str) -> tuple[list[str], str]:
    return split_placeholders(config.props[name], _providers(config))


def _providers(config: LegacyConfig) -> list[str]:
    """The names of the config providers in MirrorMaker 1's files."""
    names = COMMA.split(config.props.get(CONFIG_PROVIDERS, "").strip())
    return [name for name in names if name]


def _free_name(config: LegacyConfig) -> str:
    name = PROVIDER
    while name in _providers(config):
        name += "_"
    return name
