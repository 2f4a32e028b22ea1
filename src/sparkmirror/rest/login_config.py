"""Finds the file of users that a worker was given in Java's way.

    KAFKA_OPTS="-Djava.security.auth.login.config=/etc/kafka/connect-jaas.conf"

    KafkaConnect {
        org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule required
        file="/etc/kafka/connect-users.properties";
    };

Runs on: worker, when it starts.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from sparkmirror.config.jaas import parse_jaas
from sparkmirror.config.keys import BadValue
from sparkmirror.config.rest_keys import RestConfig
from sparkmirror.config.rest_security import EXTENSIONS, USERS_FILE
from sparkmirror.errors import ConfigError

SECTION = "KafkaConnect"
LOGIN_MODULE = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
_OPTION = "-Djava.security.auth.login.config="
# Quoted texts and comments may hold braces that mean nothing.
_PART = re.compile(
    r"""(?P<skip>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|//[^\n]*|/\*.*?\*/)|(?P<brace>[{}])""",
    re.DOTALL,
)


def users_path(rest: RestConfig, kafka_opts: str) -> Path | None:
    """The file of users; None if nobody has to log in.

    Raises:
        ConfigError: somebody has to, but it is not said where the users are.
    """
    if rest.users_file is not None:
        return Path(rest.users_file)
    return _from_jaas(kafka_opts) if rest.basic_auth else None


def _from_jaas(kafka_opts: str) -> Path:
    login_config = _login_config(kafka_opts)
    if login_config is None:
        raise ConfigError(
            EXTENSIONS,
            None,
            "asks for passwords, but no file of users is named",
            f"set {USERS_FILE}, or KAFKA_OPTS={_OPTION}FILE as for Connect",
        )
    return _users_in(login_config)


def _login_config(kafka_opts: str) -> Path | None:
    try:
        words = shlex.split(kafka_opts)
    except ValueError:  # a quote that is not closed
        words = kafka_opts.split()
    found = [word.removeprefix(_OPTION) for word in words if word.startswith(_OPTION)]
    # Java takes the last; with two equals signs the file counts alone, as it does here.
    return Path(found[-1].removeprefix("=")) if found else None


def _users_in(login_config: Path) -> Path:
    try:
        body = section_of(login_config.read_text(encoding="utf-8"), SECTION)
        module = parse_jaas(body)
    except (OSError, UnicodeDecodeError) as error:
        raise _refuse(login_config, f"cannot be read: {error}") from error
    except BadValue as bad:
        raise _refuse(login_config, f"{SECTION} {bad.reason}", bad.remedy) from bad
    if module.name != LOGIN_MODULE or "file" not in module.options:
        raise _refuse(
            login_config,
            f"{SECTION} has no file of users",
            f'write it as: {LOGIN_MODULE} required file="...";',
        )
    return Path(module.options["file"])


def section_of(text: str, name: str) -> str:
    """What is between the braces of a section. Raises BadValue if there is no such section."""
    start, begin, header = 0, 0, ""
    for found in _PART.finditer(text):
        if found["brace"] == "{":
            header = _PART.sub("", text[start : found.start()]).replace(";", " ").strip()
            begin = found.end()
        elif found["brace"] == "}":
            if header == name:
                return text[begin : found.start()]
            start, header = found.end(), ""
    raise BadValue("is missing", f"write it as: {name} {{ ... }};")


def _refuse(path: Path, reason: str, remedy: str = "") -> ConfigError:
    return ConfigError("java.security.auth.login.config", None, reason, remedy, str(path))
