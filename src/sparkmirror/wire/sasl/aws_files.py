"""Where AWS's SDKs keep what an identity needs: two files of profiles, and a token.

Runs on: worker, which sends these files to executors, and executor. Needs no botocore.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

# botocore's name of each file, the variable that moves it, and its name in ~/.aws.
PROFILE_FILES = {
    "credentials_file": ("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
    "config_file": ("AWS_CONFIG_FILE", "config"),
}
TOKEN_FILE = "AWS_WEB_IDENTITY_TOKEN_FILE"  # noqa: S105 - the name of a variable


def profile_paths(environment: Mapping[str, str]) -> dict[str, str]:
    """The path of each file, by botocore's name for it."""
    folder = Path("~/.aws").expanduser()
    return {
        name: environment.get(variable, str(folder / file))
        for name, (variable, file) in PROFILE_FILES.items()
    }


def aws_files(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Those that are there: what an executor on another machine needs."""
    token = environment.get(TOKEN_FILE)
    paths = [*profile_paths(environment).values(), *([token] if token else [])]
    return tuple(path for path in paths if Path(path).is_file())
