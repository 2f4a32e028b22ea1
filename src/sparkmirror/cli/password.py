"""`sparkmirror password USER`: a line for the file of users of a worker's REST API."""

from __future__ import annotations

import sys
from typing import Annotated

import javaproperties
import typer

from sparkmirror.errors import ConfigError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("password")(password)


def password(
    user: Annotated[str, typer.Argument(help="Who is to log in.", metavar="USER")],
) -> None:
    """Hash a password and print the line for the file of users (rest.basic.auth.users.file).

    The password is asked for, or read from standard input: the first line of it.
    """
    from sparkmirror.rest.security.passwords import hash_password

    if not user or ":" in user:
        raise ConfigError("USER", user, "no name of a user", "it is not empty and has no colon")
    text = _ask() if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
    if not text:
        raise ConfigError("password", None, "is empty", "give one")
    typer.echo(javaproperties.join_key_value(user, hash_password(text), separator=": "))


def _ask() -> str:
    return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
