"""Asks a worker for the views: any worker of the group answers for all.

Runs on: any machine. Blocks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from sparkmirror.cli.deploy import Ca, Certificate, UserOption, ask_access
from sparkmirror.cli.tables import echo
from sparkmirror.connect.entities import Json, RequestError
from sparkmirror.errors import MirrorError
from sparkmirror.tools.deploy.rest_client import ConnectClient

__all__ = ["Ca", "Certificate", "UserOption"]

DEFAULT_URL = "http://localhost:8083"
PATIENCE_SECONDS = 20.0
_NOT_FOUND = 404
OTHER = (
    "the worker at {url} has no views: it is none of sparkmirror, or an older release; use --url "
    "for one of sparkmirror"
)

WorkerUrl = Annotated[
    str,
    typer.Option(
        "--url",
        envvar="SPARKMIRROR_URL",
        help="Any worker, or a node of dedicated mode; it answers for all.",
    ),
]
JsonAnswer = Annotated[bool, typer.Option("--json", help="Print the worker's answer as JSON.")]
FlowOption = Annotated[
    str, typer.Option("--flow", metavar="A->B", help="Only this flow; default: all.")
]
Filter = Annotated[
    str, typer.Option("--filter", metavar="TEXT", help="Only names with TEXT; /RE/ is a pattern.")
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=2000, help="At most so many rows.")]


class ViewsMissing(MirrorError):
    """The server has no views. Operator action: name a worker of sparkmirror."""


class ViewClient:
    """Of one worker."""

    def __init__(self, client: ConnectClient) -> None:
        self._client = client

    @property
    def url(self) -> str:
        """Of the worker, without a login."""
        return self._client.url

    def get(self, view: str, **parameters: object) -> Json:
        """The answer of GET /sparkmirror/<view>.

        Raises:
            RequestError: the worker rejects the parameters, or there is no such flow or topic.
            ViewsMissing, WorkerUnreachable, LoginRejected: this worker cannot be asked.
        """
        given = {name: value for name, value in parameters.items() if value not in ("", None)}
        query = f"?{urlencode(given)}" if given else ""
        self._client.renew_patience()
        try:
            found = self._client.get(f"/sparkmirror/{view}{query}")
        except RequestError as error:
            if error.status == _NOT_FOUND and error.text == "HTTP 404 Not Found":
                raise ViewsMissing(OTHER.format(url=self.url)) from error
            raise
        if not isinstance(found, dict) or "now_ms" not in found:
            raise ViewsMissing(OTHER.format(url=self.url))
        return found


@contextmanager
def view_client(
    url: str, user: str, ca: Path | None, certificate: Path | None
) -> Iterator[ViewClient]:
    """Connected when it is asked."""
    with ConnectClient(url, PATIENCE_SECONDS, ask_access(user, ca, certificate)) as client:
        yield ViewClient(client)


def print_json(answer: Mapping[str, Any]) -> None:
    """For scripts."""
    echo(json.dumps(answer, indent=2, ensure_ascii=False))


def print_missing(answer: Mapping[str, Any]) -> None:
    """What is not in the answer, so that a short list is no surprise."""
    for text in answer["missing"]:
        echo(f"warning: not known: {text}", err=True)
