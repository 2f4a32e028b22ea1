"""JVM options that configure logins of Kafka clients, used where our files have no login.

    KAFKA_OPTS="-Djava.security.auth.login.config=/etc/kafka/jaas.conf"

    KafkaClient {
        org.apache.kafka.common.security.plain.PlainLoginModule required
        username="alice" password="...";
    };

The command that starts the program passes KAFKA_OPTS to `use_java_options`. Mirrors: Java's rule
that `sasl.jaas.config` wins.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from sparkmirror.config.config_def import BadValue, Secret

LOGIN_CONFIG = "java.security.auth.login.config"
KRB5_CONF = "java.security.krb5.conf"
CLIENT_SECTION = "KafkaClient"
# Quoted text and comments may contain braces, which are ignored.
_PART = re.compile(
    r"""(?P<skip>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|//[^\n]*|/\*.*?\*/)|(?P<brace>[{}])""",
    re.DOTALL,
)

_in_use = [""]


def use_java_options(kafka_opts: str) -> None:
    """Use the login in `kafka_opts` for clients without their own."""
    _in_use[0] = kafka_opts


def java_property(kafka_opts: str, name: str) -> str | None:
    """The value of -Dname=value; Java uses the last of several."""
    try:
        words = shlex.split(kafka_opts)
    except ValueError:  # a quote that is not closed
        words = kafka_opts.split()
    option = f"-D{name}="
    found = [word.removeprefix(option) for word in words if word.startswith(option)]
    # In Java, two equals signs mean that only this file counts; here only this file ever counts.
    return found[-1].removeprefix("=") if found else None


def option_in_use(name: str) -> str | None:
    """The value of -Dname=value in the KAFKA_OPTS given to `use_java_options`."""
    return java_property(_in_use[0], name)


def client_login() -> Secret | None:
    """The login module of clients, in the form of `sasl.jaas.config`; None without a file.

    Raises:
        BadValue: there is a file, but it has no login module for clients.
    """
    path = option_in_use(LOGIN_CONFIG)
    if path is None:
        return None
    try:
        return Secret(section_of(Path(path).read_text(encoding="utf-8"), CLIENT_SECTION))
    except (OSError, UnicodeDecodeError) as error:
        raise BadValue(f"is not set, and {LOGIN_CONFIG}={path} cannot be read: {error}") from error
    except BadValue as bad:
        reason = f"is not set, and the section {CLIENT_SECTION} of {path} {bad.reason}"
        raise BadValue(reason, bad.remedy) from bad


def section_of(text: str, name: str) -> str:
    """The text between the braces of a section. Raises BadValue if there is no such section."""
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
