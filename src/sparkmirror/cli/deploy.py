"""`sparkmirror deploy|undeploy|redeploy|status CLUSTER`: the connectors of one source cluster."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from sparkmirror.cli.tables import print_table
from sparkmirror.tools.deploy.connector_files import (
    ConnectorFile,
    read_aliases,
    read_files,
    read_names,
)
from sparkmirror.tools.deploy.deployment import Deployment
from sparkmirror.tools.deploy.rest_client import Access, ConnectClient, DeployedStatus, Part

EXIT_NOT_RUNNING = 1
STATUS_SECONDS = 10.0
HEADER = ("CONNECTOR", "TASK", "STATE", "WORKER", "REASON")
NOT_FOUND = "NOT FOUND"

ClusterArgument = Annotated[
    str, typer.Argument(help="The source cluster, as in mm2-msc-CLUSTER.json.", metavar="CLUSTER")
]
Folder = Annotated[
    Path, typer.Option("--dir", metavar="FOLDER", help="Folder with the three files.")
]
Url = Annotated[str, typer.Option("--url", help="Any worker of the cluster.")]
Timeout = Annotated[
    float,
    typer.Option("--timeout", min=1, help="Seconds to wait until connectors run or are deleted."),
]
UserOption = Annotated[
    str,
    typer.Option(
        "--user",
        envvar="SPARKMIRROR_USER",
        metavar="NAME[:PASSWORD]",
        help="Login at the worker; prompts for a missing password.",
    ),
]
Ca = Annotated[
    Path | None,
    typer.Option(
        "--ca",
        envvar="SPARKMIRROR_CA",
        metavar="FILE",
        help="Certificates to trust, in PEM; default: the system's.",
    ),
]
Certificate = Annotated[
    Path | None,
    typer.Option(
        "--cert",
        envvar="SPARKMIRROR_CERT",
        metavar="FILE",
        help="Client certificate and key, in PEM, if the worker requires one.",
    ),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Also send keys that look misspelt; the worker ignores them."),
]
StatusJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ResultJson = Annotated[
    bool,
    typer.Option(
        "--json", help="Print the connectors that there are then as JSON, and progress to stderr."
    ),
]
DEFAULT_FOLDER = Path("mm2")
DEFAULT_URL = "http://localhost:8083"
DEFAULT_TIMEOUT = 60.0


def register(app: typer.Typer) -> None:
    """Add the four commands."""
    for command in (deploy, undeploy, redeploy, status):
        app.command(command.__name__)(command)


def deploy(
    cluster: ClusterArgument,
    *,
    folder: Folder = DEFAULT_FOLDER,
    url: Url = DEFAULT_URL,
    timeout: Timeout = DEFAULT_TIMEOUT,
    force: Force = False,
    as_json: ResultJson = False,
    user: UserOption = "",
    ca: Ca = None,
    certificate: Certificate = None,
) -> None:
    """Create the three connectors of a source cluster, all or none, and wait until they run.

    Reads mm2-cpc-CLUSTER.json, mm2-hbc-CLUSTER.json and mm2-msc-CLUSTER.json, and lets the worker
    validate them before anything is created. A connector that is RUNNING stays unchanged. An
    unknown key that resembles a known one is an error; --force makes it a warning.

    Exits with 0 if all connectors and tasks are RUNNING; 1 if a file is missing, the worker does
    not respond or rejects a request, or something is not RUNNING in time; 2 if the files are wrong.
    """
    files = _files(folder, cluster, force)
    with ConnectClient(url, timeout, ask_access(user, ca, certificate)) as client:
        deployment = Deployment(client, _progress(as_json), _warn)
        deployment.validate(files)
        deployment.deploy(files)
        _print_result(client, cluster, [file.name for file in files], as_json)


def undeploy(
    cluster: ClusterArgument,
    *,
    folder: Folder = DEFAULT_FOLDER,
    url: Url = DEFAULT_URL,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: ResultJson = False,
    user: UserOption = "",
    ca: Ca = None,
    certificate: Certificate = None,
) -> None:
    """Delete the three connectors of a source cluster.

    Takes their names from the files, or from the name of a missing file without .json. Topics and
    positions stay, so a later deploy continues.

    Exits with 0 if they are deleted or did not exist; 1 if the worker does not respond or rejects a
    request; 2 if the files are wrong.
    """
    names = read_names(folder, cluster)
    with ConnectClient(url, timeout, ask_access(user, ca, certificate)) as client:
        client.check()
        deployment = Deployment(client, _progress(as_json), _warn)
        deployment.undeploy(names)
        deployment.warn_of_others(read_aliases(folder, cluster))
        _print_result(client, cluster, names, as_json)


def redeploy(
    cluster: ClusterArgument,
    *,
    folder: Folder = DEFAULT_FOLDER,
    url: Url = DEFAULT_URL,
    timeout: Timeout = DEFAULT_TIMEOUT,
    force: Force = False,
    as_json: ResultJson = False,
    user: UserOption = "",
    ca: Ca = None,
    certificate: Certificate = None,
) -> None:
    """Delete the three connectors of a source cluster and create them again.

    Checks the files before it deletes anything. Exit codes are those of deploy.
    """
    files = _files(folder, cluster, force)
    with ConnectClient(url, timeout, ask_access(user, ca, certificate)) as client:
        deployment = Deployment(client, _progress(as_json), _warn)
        deployment.validate(files)
        deployment.undeploy([file.name for file in files])
        deployment.warn_of_others(read_aliases(folder, cluster))
        client.renew_patience()
        deployment.deploy(files)
        _print_result(client, cluster, [file.name for file in files], as_json)


def status(
    cluster: ClusterArgument,
    *,
    folder: Folder = DEFAULT_FOLDER,
    url: Url = DEFAULT_URL,
    as_json: StatusJson = False,
    user: UserOption = "",
    ca: Ca = None,
    certificate: Certificate = None,
) -> None:
    """Show the three connectors of a source cluster, and their tasks.

    Exits with 0 if all are RUNNING without problems; 1 if not, or if the worker does not respond;
    2 if the files are wrong. REASON shows the problem.
    """
    names = read_names(folder, cluster)
    with ConnectClient(url, STATUS_SECONDS, ask_access(user, ca, certificate)) as client:
        client.check()
        found = {name: client.status(name) for name in names}
    if as_json:
        _print_json(cluster, found)
    else:
        rows = [row for name, each in found.items() for row in _rows(name, each)]
        print_table(HEADER, rows)
    is_well = all(each is not None and each.is_well for each in found.values())
    raise typer.Exit(0 if is_well else EXIT_NOT_RUNNING)


def _progress(as_json: bool) -> Callable[[str], None]:
    """Where a line of progress goes: to people, or beside the document."""
    return partial(typer.echo, err=as_json)


def _print_result(client: ConnectClient, cluster: str, names: Iterable[str], as_json: bool) -> None:
    if as_json:
        client.renew_patience()
        _print_json(cluster, {name: client.status(name) for name in names})


def _print_json(cluster: str, found: Mapping[str, DeployedStatus | None]) -> None:
    running = all(each is not None and each.is_running for each in found.values())
    shown = [_as_json(name, each) for name, each in found.items()]
    typer.echo(json.dumps({"cluster": cluster, "running": running, "connectors": shown}))


def _files(folder: Path, cluster: str, force: bool) -> list[ConnectorFile]:
    files = read_files(folder, cluster, force=force)
    for file in files:
        for warning in file.warnings:
            _warn(warning)
    return files


def ask_access(user: str, ca: Path | None, certificate: Path | None) -> Access:
    """Prompts for a missing password."""
    if user and ":" not in user:
        user = f"{user}:{typer.prompt(f'Password of {user}', hide_input=True, err=True)}"
    return Access(user, ca, certificate)


def _warn(text: str) -> None:
    typer.echo(f"warning: {text}", err=True)


def _as_json(name: str, found: DeployedStatus | None) -> dict[str, object]:
    """The worker's own response, or just the name of a connector that does not exist."""
    return found.response if found else {"name": name, "connector": None, "tasks": []}


def _rows(name: str, found: DeployedStatus | None) -> Sequence[Sequence[object]]:
    if found is None:
        return [(name, None, NOT_FOUND, None, None)]
    return [_cells(part) for part in found.parts]


def _cells(part: Part) -> Sequence[object]:
    return part.connector, part.task, part.state, part.worker_id, part.reason or None
