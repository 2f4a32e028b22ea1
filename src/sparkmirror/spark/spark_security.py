"""Spark's own traffic: authenticated and encrypted wherever executors are other processes.

Runs on: worker. A Spark job carries the token with which its task connects and gets passwords, so
anyone who can read Spark's traffic can get them too.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping

from sparkmirror.config.masking import is_secret, mask
from sparkmirror.errors import ConfigError

log = logging.getLogger(__name__)

AUTHENTICATE = "spark.authenticate"
SECRET = "spark.authenticate.secret"  # noqa: S105 - the name of a key
CRYPTO = "spark.network.crypto.enabled"
TLS = "spark.ssl.rpc.enabled"
REDACTION = "spark.redaction.regex"
# Spark's own, which ours would replace.
SPARK_REDACTION = "(?i)secret|password|token|access[.]?key"
FIRST_SETTINGS = ("spark.master", "spark.driver.")
STANDALONE = "spark://"

SECURE_DEFAULTS = {
    AUTHENTICATE: "true",
    CRYPTO: "true",
    "spark.io.encryption.enabled": "true",
}


def secure_defaults(settings: Mapping[str, str]) -> dict[str, str]:
    """What is set on a cluster unless the user decides otherwise."""
    if settings.get(AUTHENTICATE, "true") != "true":
        # Spark encrypts only authenticated connections.
        return {}
    uses_tls = settings.get(TLS) == "true"
    return {key: value for key, value in SECURE_DEFAULTS.items() if key != CRYPTO or not uses_tls}


def check_security(settings: Mapping[str, str], master: str) -> None:
    """Log what is not protected; called with the complete settings of a cluster."""
    if settings.get(AUTHENTICATE) != "true":
        log.warning(
            "%s=%s: Spark's traffic with %s is neither authenticated nor encrypted; anyone who can "
            "read it can get the passwords of the Kafka clusters",
            AUTHENTICATE,
            settings.get(AUTHENTICATE, "false"),
            master,
        )
    elif "true" not in (settings.get(CRYPTO), settings.get(TLS)):
        log.warning(
            "%s=%s: Spark's traffic with %s is not encrypted; anyone who can read it can get the "
            "passwords of the Kafka clusters",
            CRYPTO,
            settings.get(CRYPTO, "false"),
            master,
        )


def no_secret(master: str) -> ConfigError:
    """The standalone cluster has a secret of its own, which cannot be guessed."""
    return ConfigError(
        SECRET,
        None,
        f"is required and not set: {master} is a standalone cluster",
        f"set it to the {SECRET} of the cluster's master and workers, for example as "
        f"${{file:/path:key}}; or, in a network that you trust, {AUTHENTICATE}=false",
    )


def not_admitted(settings: Mapping[str, str], master: str) -> ConfigError:
    """A standalone cluster that does not talk to us; Spark has tried for a minute."""
    return ConfigError(
        AUTHENTICATE,
        settings.get(AUTHENTICATE, "false"),
        f"{master} does not accept this program",
        f"give this program and the cluster's master and workers the same {AUTHENTICATE}, {SECRET} "
        f"and {CRYPTO}; the master's log has more",
    )


def redaction(settings: Mapping[str, str]) -> dict[str, str]:
    """What Spark hides on its page and in its event log: also what config providers gave."""
    hidden = [key for key, value in settings.items() if mask(value) != value]
    if REDACTION in settings or not hidden:
        return {}
    # Spark shows Hadoop's settings once more by the names that Hadoop has for them.
    names = {name for key in hidden for name in (key, key.removeprefix("spark.hadoop."))}
    return {REDACTION: f"{SPARK_REDACTION}|^({'|'.join(map(re.escape, sorted(names)))})$"}


def is_for_command_line(key: str, value: str) -> bool:
    """Whether every user who lists the processes of the machine may see a setting.

    What the driver's JVM must know before it starts has no other way to it.
    """
    if is_secret(key):
        return False
    return mask(value) == value or key.startswith(FIRST_SETTINGS)
