"""`sparkmirror kafka`: real Kafka clusters on this machine, without Docker."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

import typer

from sparkmirror.embedded.kafka_cluster import MOST_BROKERS
from sparkmirror.embedded.kafka_releases import KAFKA_VERSION, find_release
from sparkmirror.embedded.named_clusters import (
    NamedCluster,
    list_named,
    start_named,
    stop_named,
)

EXIT_NOT_RUNNING = 1

NameOption = Annotated[str, typer.Option("--name", help="Name of the cluster, for stop.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]

kafka_app = typer.Typer(
    name="kafka", help="Start and stop real Kafka clusters on this machine.", no_args_is_help=True
)


def register(app: typer.Typer) -> None:
    """Add `kafka` to the command tree."""
    app.add_typer(kafka_app)


@kafka_app.command()
def start(
    *,
    name: NameOption,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Port of the first broker; the OS chooses if omitted."),
    ] = None,
    brokers: Annotated[int, typer.Option(min=1, max=MOST_BROKERS, help="Number of brokers.")] = 1,
    kafka_version: Annotated[
        str,
        typer.Option(
            "--version",
            "--kafka-version",
            help="Kafka release, from 2.1 on: 2.8 or 2.8.2. Before 3.3 with a ZooKeeper.",
        ),
    ] = KAFKA_VERSION,
    heap: Annotated[
        str, typer.Option("--memory", "--heap", help="Java heap of each broker, such as 2g.")
    ] = "512m",
    as_json: JsonOption = False,
) -> None:
    """Start a cluster and return when it is ready; it runs until `kafka stop`."""
    cluster = start_named(name, brokers=brokers, port=port, version=kafka_version, heap=heap)
    if as_json:
        typer.echo(json.dumps(cluster.as_json()))
        return
    typer.echo(f"Kafka {find_release(kafka_version)} cluster '{name}' is ready.")
    typer.echo(f"  bootstrap.servers  {cluster.bootstrap_servers}")
    typer.echo(f"  data and logs      {cluster.folder}")
    typer.echo(f"  stop it with       sparkmirror kafka stop --name {name}")


@kafka_app.command()
def stop(
    name: NameOption,
    keep: Annotated[bool, typer.Option("--keep", help="Keep data for the next start.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Stop a cluster and delete its data and logs. Exits with 2 if there is none of that name."""
    cluster = stop_named(name, keep=keep)
    if as_json:
        typer.echo(json.dumps({**cluster.as_json(), "kept": keep}))
        return
    typer.echo(f"Kafka cluster '{name}' stopped; {cluster.folder} {'kept' if keep else 'deleted'}.")


@kafka_app.command()
def status(
    name: Annotated[str, typer.Option("--name", help="Only this cluster.")] = "",
    as_json: JsonOption = False,
) -> None:
    """List the clusters started on this machine.

    Exits with 0; with --name, 1 if that cluster does not run or was never started.
    """
    clusters = [each for each in list_named() if name in ("", each.name)]
    if as_json:
        states = [{**each.as_json(), "running": each.is_running} for each in clusters]
        typer.echo(json.dumps(states))
    else:
        _print_clusters(clusters, name)
    if name and not any(each.is_running for each in clusters):
        raise typer.Exit(EXIT_NOT_RUNNING)


def _print_clusters(clusters: Sequence[NamedCluster], name: str) -> None:
    if not clusters:
        which = f"'{name}' " if name else ""
        typer.echo(f"No Kafka cluster {which}was started with `sparkmirror kafka start`.")
    for each in clusters:
        state = "running" if each.is_running else "stopped"
        typer.echo(f"{each.name}  {state}  {each.bootstrap_servers}  {each.folder}")
