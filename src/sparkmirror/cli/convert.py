"""`sparkmirror convert FILE`: convert a Strimzi resource to this program's files and manifests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

import sparkmirror
from sparkmirror.cli.tables import echo
from sparkmirror.config.files.regular_files import read_regular_file
from sparkmirror.errors import ConfigError, ConfigErrors
from sparkmirror.tools.convert.conversion import Conversion, Format, convert
from sparkmirror.tools.convert.documents import KIND

IMAGE = f"sparkmirror:{sparkmirror.__version__}"
DEFAULT_FOLDER = Path()


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("convert")(convert_file)


def convert_file(
    file: Annotated[
        Path, typer.Argument(help=f"A {KIND} resource of Strimzi, in YAML.", metavar="FILE")
    ],
    *,
    folder: Annotated[
        Path, typer.Option("--output", metavar="FOLDER", help="Folder for the files.")
    ] = DEFAULT_FOLDER,
    format_: Annotated[
        Format,
        typer.Option(
            "--format",
            help="mm2: one file for `sparkmirror run`. connectors: a worker's file and connectors, "
            "which continue where Strimzi's stopped.",
        ),
    ] = Format.MM2,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write files and Kubernetes manifests equivalent to a KafkaMirrorMaker2 resource.

    Lists every field that is not carried over: why, and what to do instead. Passwords and
    certificates stay in their Secrets, which the manifests mount. Opens no connections.

    Exits with 0 if the files are written; 2 if FILE is wrong or a file exists, and then writes
    nothing.
    """
    done = convert(_read(file), str(file), format_, IMAGE)
    paths = {folder / name: text for name, text in done.files.items()}
    if not force:
        _refuse_existing(paths)
    for path, text in paths.items():
        _write(path, text)
    if as_json:
        echo(json.dumps(_as_json(done, format_, paths), indent=2))
    else:
        _print(done, paths)


def _read(file: Path) -> str:
    try:
        return read_regular_file(file).decode("utf-8-sig")
    except UnicodeDecodeError:
        reason, remedy = "is not text in UTF-8", f"name the YAML file of a {KIND}"
    except FileNotFoundError:
        reason, remedy = "no such file", "check the path"
    except OSError as error:
        reason, remedy = f"cannot be read: {error.strerror or error}", "check the path"
    raise ConfigErrors([ConfigError("", None, reason, remedy, str(file))])


def _refuse_existing(paths: Iterable[Path]) -> None:
    errors = [
        ConfigError("", None, "the file exists", "add --force to overwrite it", str(path))
        for path in paths
        if path.exists()
    ]
    if errors:
        raise ConfigErrors(errors)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    except OSError as error:
        reason = f"cannot be written: {error.strerror or error}"
        raise ConfigError("--output", str(path), reason, "name another folder") from error


def _as_json(done: Conversion, format_: Format, paths: Iterable[Path]) -> dict[str, object]:
    return {
        "name": done.name,
        "format": format_.value,
        "files": [str(path) for path in paths],
        "not_carried_over": [note._asdict() for note in done.not_carried],
    }


def _print(done: Conversion, paths: Iterable[Path]) -> None:
    for path in paths:
        echo(f"written: {path}")
    echo(f"not carried over: {len(done.not_carried)}")
    for note in done.not_carried:
        echo(f"  {note.path}: {note.reason}")
        echo(f"    instead: {note.instead}")
