"""Runs this program's own parsers on the written settings, and reports under the resource's paths.

A rejected value, or a key without effect here, is not an error of the resource: it is listed with
its path. Config providers are not used, because their files are in the pod, so values
with placeholders are not checked.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from sparkmirror.config.connector_spec import parse_connector
from sparkmirror.config.files.providers import CONFIG_PROVIDERS
from sparkmirror.config.keys.plugins import UnusableConnector
from sparkmirror.config.masking import provisional
from sparkmirror.config.mm2 import load_mm2
from sparkmirror.config.worker.rest_keys import ADVERTISED_HOST
from sparkmirror.config.worker.worker_file import WorkerFile, parse_worker_file
from sparkmirror.errors import ConfigErrors
from sparkmirror.tools.convert.connect_files import WORKER_FILE
from sparkmirror.tools.convert.ledger import Ledger
from sparkmirror.tools.convert.mm2_files import FILE as MM2_FILE
from sparkmirror.tools.convert.settings import FileSettings, properties_text

REFUSED = "sparkmirror rejects the written file because of it"


def check_mm2(settings: FileSettings, ledger: Ledger) -> None:
    """Check an mm2 file."""
    shown = _without_providers(settings)
    with provisional(), tempfile.TemporaryDirectory(prefix="sparkmirror-") as folder:
        path = Path(folder) / MM2_FILE
        path.write_text(properties_text({"": shown}), "ascii")
        try:
            warnings = load_mm2(path).warnings
        except ConfigErrors as errors:
            _note_errors(errors, shown, ledger)
        else:
            _note_warnings(_without_place(warnings, str(path)), shown, ledger)


def check_workers(worker: FileSettings, connectors: Iterable[FileSettings], ledger: Ledger) -> None:
    """Check a worker's file and, if it is valid, its connectors."""
    shown = _without_providers(worker)
    with provisional():
        try:
            file = parse_worker_file(_plain(shown), Path(WORKER_FILE))
        except ConfigErrors as errors:
            _note_errors(errors, shown, ledger)
            return
        _note_warnings(_without_place(file.warnings, WORKER_FILE), shown, ledger)
        for connector in connectors:
            _check_connector(connector, file, ledger)


def _check_connector(settings: FileSettings, worker: WorkerFile, ledger: Ledger) -> None:
    name = settings["name"].value
    try:
        warnings = parse_connector(_plain(settings), worker).warnings
    except ConfigErrors as errors:
        _note_errors(errors, settings, ledger)
    except UnusableConnector as error:
        ledger.note(settings["name"].path, str(error), "correct the written file")
    else:
        _note_warnings(_without_place(warnings, f"connector {name}"), settings, ledger)


def _without_providers(settings: FileSettings) -> FileSettings:
    """The settings without config providers and the pod's address, which is a placeholder."""
    return {
        key: setting
        for key, setting in settings.items()
        if not key.startswith(CONFIG_PROVIDERS) and key != ADVERTISED_HOST
    }


def _plain(settings: FileSettings) -> Mapping[str, str]:
    return {key: setting.value for key, setting in settings.items()}


def _without_place(warnings: Iterable[str], place: str) -> Iterator[str]:
    for warning in warnings:
        yield warning.removeprefix(f"{place}: ")


def _note_errors(errors: ConfigErrors, settings: FileSettings, ledger: Ledger) -> None:
    for error in errors.errors:
        setting = settings.get(error.key)
        if setting is None or "${" not in setting.value:
            path = setting.path if setting is not None else ""
            what = f"{error.key}: {error.reason}" if error.key else error.reason
            remedy = error.remedy or "change it in the written file"
            ledger.note(path or "spec", f"{REFUSED}: {what}", remedy)


def _note_warnings(warnings: Iterable[str], settings: FileSettings, ledger: Ledger) -> None:
    """Record warnings: one that begins with a key under its path, others under spec."""
    for warning in warnings:
        found = [key for key in settings if warning.startswith(f"{key}: ")]
        key = max(found, key=len, default="")
        setting = settings.get(key)
        if setting is None:
            ledger.note("spec", warning, "see docs/configuration.md")
        elif setting.path and "${" not in setting.value:
            text = warning.removeprefix(f"{key}: ")
            ledger.note(setting.path, f"{key}: {text}", "nothing, or change the written file")
