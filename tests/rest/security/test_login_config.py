"""Files of users that are named in Java's way."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.config.worker.rest_keys import Listener, RestConfig
from sparkmirror.errors import ConfigError
from sparkmirror.rest.security.login_config import LOGIN_MODULE, users_path

_ONE = (Listener("http", "", 8083),)
_WANTED = RestConfig(_ONE, basic_auth=True)
_SECTION = f'KafkaConnect {{\n  {LOGIN_MODULE} required\n  file="/etc/users";\n}};\n'


def test_no_login_is_required_by_default() -> None:
    assert users_path(RestConfig(_ONE), "-Djava.security.auth.login.config=/nowhere") is None


def test_own_key_is_stronger() -> None:
    config = RestConfig(_ONE, basic_auth=True, users_file="/own")
    assert users_path(config, "-Djava.security.auth.login.config=/nowhere") == Path("/own")


@pytest.mark.parametrize(
    "text",
    [
        _SECTION,
        "// KafkaConnect { no };\n" + _SECTION,
        'KafkaClient { some.Module required password="};{"; };\n' + _SECTION,
        "/* { */" + _SECTION.replace("\n", " "),
    ],
    ids=["alone", "comment", "second", "one line"],
)
@pytest.mark.parametrize("opts", ["-Xmx1g -D{}", '"-D{}" -Dx=y', "-D={}"])
def test_section_of_a_login_config(tmp_path: Path, text: str, opts: str) -> None:
    file = tmp_path / "jaas.conf"
    file.write_text(text)
    name = f"java.security.auth.login.config={file}"
    words = opts.format(name) if "D=" not in opts else f"-D{name.replace('=', '==', 1)}"
    assert users_path(_WANTED, words) == Path("/etc/users")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "KafkaConnect is missing"),
        ("KafkaClient { x required; };", "KafkaConnect is missing"),
        ("KafkaConnect { };", "KafkaConnect has no login module"),
        ('KafkaConnect { org.other.Module required file="/x"; };', "has no file of users"),
        (f"KafkaConnect {{ {LOGIN_MODULE} required; }};", "has no file of users"),
        (f"KafkaConnect {{ {LOGIN_MODULE} required file=/x }};", "KafkaConnect "),
        (None, "cannot be read"),
    ],
    ids=["empty", "other section", "no module", "other module", "no file", "malformed", "missing"],
)
def test_login_config_without_users_is_an_error(
    tmp_path: Path, text: str | None, reason: str
) -> None:
    file = tmp_path / "jaas.conf"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError, match=reason) as caught:
        users_path(_WANTED, f"-Djava.security.auth.login.config={file}")
    assert str(file) in str(caught.value)


@pytest.mark.parametrize("opts", ["", "-Xmx1g", '-Dx="'])
def test_users_must_be_somewhere(opts: str) -> None:
    with pytest.raises(ConfigError, match=r"set rest\.basic\.auth\.users\.file, or KAFKA_OPTS="):
        users_path(_WANTED, opts)
