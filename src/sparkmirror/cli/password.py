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
    user: Annotated[str, typer.Argument(help="Name of the user.", metavar="USER")],
) -> None:
    """Hash a password and print the line for the file of users (rest.basic.auth.users.file).

    Prompts for the password, or reads the first line of standard input.
    """
    from sparkmirror.rest.security.passwords import hash_password

    if not user or ":" in user:
        raise ConfigError("USER", user, "not a user name", "use a name without a colon")
    text = _ask() if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
    if not text:
        raise ConfigError("password", None, "is empty", "enter one")
    typer.echo(javaproperties.join_key_value(user, hash_password(text), separator=": "))


def _ask() -> str:
    return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
