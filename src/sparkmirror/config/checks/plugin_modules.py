"""Which Python modules connectors may name, as `module:Class`.

Importing a module runs it, which may be all an attacker needs. So connectors from the REST API may
name only modules that the worker's file lists; an mm2 file belongs to its operator and may name
any.
"""

from __future__ import annotations

from collections.abc import Collection

from sparkmirror.config.config_def import Definition, Key, Type
from sparkmirror.config.findings import Settings

PLUGIN_MODULES = "sparkmirror.plugin.modules"
NOT_LISTED = f"{PLUGIN_MODULES} does not list its module"

PLUGIN_KEYS = Definition(
    Key(
        name=PLUGIN_MODULES,
        type=Type.LIST,
        default=(),
        doc="Python modules, including their submodules, whose classes connectors may name as "
        "`module:Class`: custom policies and filters.",
    )
)


def check_modules(settings: Settings, listed: Collection[str] | None) -> None:
    """Report every class whose module is neither `listed` nor below a listed one; None: any may."""
    if listed is None:
        return
    for key, value in settings.values.items():
        module, colon, _ = value.strip().partition(":")
        if key.endswith(".class") and colon and not _is_listed(module, listed):
            remedy = f"add {module} to {PLUGIN_MODULES} in the worker's file"
            settings.findings.error(key, value, NOT_LISTED, remedy)


def _is_listed(module: str, listed: Collection[str]) -> bool:
    return any(module == each or module.startswith(f"{each}.") for each in listed)
