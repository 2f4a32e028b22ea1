"""Variables of Confluent's and Debezium's images that set no key of a worker, and why not.

A table of names and reasons: any other name that begins with CONNECT_ sets a key or a log level.
Runs on: worker, once, at the start. Values are never shown: they may contain passwords.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import NamedTuple

from sparkmirror.config.files.java_options import KRB5_CONF, LOGIN_CONFIG
from sparkmirror.config.files.variable_names import PREFIX
from sparkmirror.config.keys.families import NO_JMX
from sparkmirror.config.security.allowed_access import ALLOWED_FILES, ALLOWED_URLS, SYSTEM_PROPERTY

KAFKA_OPTS = "KAFKA_OPTS"
# The system properties in KAFKA_OPTS that have an effect here.
READ_OPTIONS = (
    LOGIN_CONFIG,
    KRB5_CONF,
    *(f"{SYSTEM_PROPERTY}{key}" for key in (ALLOWED_URLS, ALLOWED_FILES)),
)
NO_PLUGINS = "there are no Java plugins to load"
ONE_LOG = (
    "the log goes to standard error; CONNECT_SPARKMIRROR_LOG_FORMAT=json makes each line a JSON "
    "object"
)
CONTAINERS_MEMORY, FILES_MEMORY = "CONNECT_SPARK_DRIVER_MEMORY", "spark.driver.memory"
OTHER_JVM = f"it is for the JVM of Kafka Connect; {CONTAINERS_MEMORY} sizes Spark's"
# Read by kafka-run-class.sh, and not also set for other programs.
OF_SCRIPTS = r"KAFKA_(OPTS|LOG4J_OPTS|JMX_\w+|HEAP_OPTS|JVM_PERFORMANCE_OPTS|GC_LOG_OPTS)|JMX_PORT"
OF_KUBERNETES = "Kubernetes, or a link between containers, sets it"
# A Service named `connect` sets CONNECT_SERVICE_HOST, CONNECT_PORT=tcp://10.0.0.7:8083 and so on in
# every pod of its namespace; one named `connect-rest` even CONNECT_REST_PORT.
_LINK_NAME = re.compile(
    r"\w+_SERVICE_(HOST|PORT(_\w+)?)|\w+_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?"
)
_LINK_VALUE = re.compile(r"(tcp|udp|sctp)://\S+:\d+")


class Unused(NamedTuple):
    """Names of variables, as a pattern, and why they have no effect.

    Names `of_debezium` are so common that elsewhere they are hardly meant for a worker.
    """

    names: str
    reason: str
    of_debezium: bool = False


UNUSED = (
    Unused(PREFIX, "it does not name a key"),
    Unused("CONNECT_URL", "it is for mm2.sh, which connects to a worker"),
    Unused(
        "CONNECT_LOG4J_TOOLS_ROOT_LOGLEVEL",
        "the command line tools of Kafka are not part of this program",
    ),
    # Those that set levels are in log_variables.
    Unused(r"CONNECT_LOG4J_(?!ROOT_LOGLEVEL$|LOGGERS$|LOGGER_.)\w*", ONE_LOG),
    Unused("KAFKA_LOG4J_OPTS", ONE_LOG),
    Unused(
        r"(CONNECT_)?C?UB_\w+",
        "a worker does not wait for its brokers: it ends with exit code 1 if none responds, so "
        "restart its container",
    ),
    Unused("CONNECT_PROPERTIES_DIR", "no properties file is written"),
    Unused(r"KAFKA_JMX_\w+|JMX_?(PORT|HOST|AUTH|SSL)", NO_JMX),
    Unused("KAFKA_(HEAP|JVM_PERFORMANCE|GC_LOG)_OPTS", OTHER_JVM),
    Unused("CLASSPATH|KAFKA_CONNECT_PLUGINS_DIR|EXTERNAL_LIBS_DIR", NO_PLUGINS),
    Unused(r"HEAP_OPTS|ENABLE_JFR|JFR_\w+", OTHER_JVM, of_debezium=True),
    Unused("HOST_NAME", "set REST_HOST_NAME and ADVERTISED_HOST_NAME", of_debezium=True),
    Unused("APICURIO_REGISTRY|SCHEMA_REGISTRY", NO_PLUGINS, of_debezium=True),
    Unused(
        r"ENABLE_(APICURIO_CONVERTERS|DEBEZIUM_\w+|OTEL|CHRONICLE_QUEUE)",
        NO_PLUGINS,
        of_debezium=True,
    ),
    Unused("ENABLE_(JOLOKIA|JMX_EXPORTER)", NO_JMX, of_debezium=True),
    Unused(
        "SENSITIVE_PROPERTIES",
        "every value with a secret's name is hidden",
        of_debezium=True,
    ),
)


def why_unused(name: str, value: str, *, is_debezium: bool = False) -> str | None:
    """Why the variable has no effect; None if it has one, or is not for a worker."""
    if name.startswith(PREFIX) and _is_link(name, value):
        return OF_KUBERNETES
    for row in UNUSED:
        if (is_debezium or not row.of_debezium) and re.fullmatch(row.names, name):
            return row.reason
    return None


def unused_warnings(environ: Mapping[str, str], *, is_debezium: bool) -> list[str]:
    """One line for each reason, with all its variables."""
    names: dict[str, list[str]] = {}
    for name in sorted(environ):
        reason = why_unused(name, environ[name], is_debezium=is_debezium)
        if reason is not None and environ[name]:
            names.setdefault(reason, []).append(name)
    found = [f"{', '.join(each)}: no effect: {reason}" for reason, each in names.items()]
    return found + _of_java_options(environ.get(KAFKA_OPTS, ""))


def jvm_warnings(environ: Mapping[str, str]) -> list[str]:
    """Variables of Kafka's start scripts that have no effect on a worker with a file."""
    given = {name: value for name, value in environ.items() if re.fullmatch(OF_SCRIPTS, name)}
    lines = unused_warnings(given, is_debezium=False)
    return [line.replace(CONTAINERS_MEMORY, FILES_MEMORY) for line in lines]


def _of_java_options(options: str) -> list[str]:
    try:
        words = shlex.split(options)
    except ValueError:  # a quote that is not closed
        words = options.split()
    if all(word.startswith(tuple(f"-D{name}=" for name in READ_OPTIONS)) for word in words):
        return []
    agents = f"; no Java agent is loaded: {NO_JMX}" if any(map(_is_agent, words)) else ""
    return [
        f"{KAFKA_OPTS}: of its options, only -D of {', '.join(READ_OPTIONS)} have an effect{agents}"
    ]


def _is_agent(word: str) -> bool:
    return word.startswith(("-javaagent:", "-agentlib:", "-agentpath:"))


def _is_link(name: str, value: str) -> bool:
    is_port = name.endswith("_PORT") and _LINK_VALUE.fullmatch(value) is not None
    return is_port or _LINK_NAME.fullmatch(name) is not None
