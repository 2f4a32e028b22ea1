"""Finds the file of users in a JAAS file, where Connect configures it.

    KAFKA_OPTS="-Djava.security.auth.login.config=/etc/kafka/connect-jaas.conf"

    KafkaConnect {
        org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule required
        file="/etc/kafka/connect-users.properties";
    };

Runs on: worker, when it starts.
"""

from __future__ import annotations

from pathlib import Path

from sparkmirror.config.config_def import BadValue
from sparkmirror.config.files.java_options import LOGIN_CONFIG, java_property, section_of
from sparkmirror.config.security.jaas import parse_jaas
from sparkmirror.config.worker.rest_keys import RestConfig
from sparkmirror.config.worker.rest_security import EXTENSIONS, USERS_FILE
from sparkmirror.errors import ConfigError

SECTION = "KafkaConnect"
LOGIN_MODULE = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"


def users_path(rest: RestConfig, kafka_opts: str) -> Path | None:
    """The file of users; None if no login is required.

    Raises:
        ConfigError: a login is required, but no file of users is configured.
    """
    if rest.users_file is not None:
        return Path(rest.users_file)
    return _from_jaas(kafka_opts) if rest.basic_auth else None


def _from_jaas(kafka_opts: str) -> Path:
    login_config = java_property(kafka_opts, LOGIN_CONFIG)
    if login_config is None:
        raise ConfigError(
            EXTENSIONS,
            None,
            "requires passwords, but no file of users is configured",
            f"set {USERS_FILE}, or KAFKA_OPTS=-D{LOGIN_CONFIG}=FILE as for Connect",
        )
    return _users_in(Path(login_config))


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


def _refuse(path: Path, reason: str, remedy: str = "") -> ConfigError:
    return ConfigError(LOGIN_CONFIG, None, reason, remedy, str(path))
