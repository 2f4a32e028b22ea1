"""Variables of the images that set no key: each is named once, with a reason, without its value."""

from __future__ import annotations

import pytest

from sparkmirror.config.keys.families import NO_JMX
from sparkmirror.config.worker.image_variables import (
    NO_PLUGINS,
    OF_KUBERNETES,
    ONE_LOG,
    OTHER_JVM,
    READ_OPTIONS,
    jvm_warnings,
    unused_warnings,
    why_unused,
)

LOGIN = "-Djava.security.auth.login.config=/etc/jaas.conf"


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("CONNECT_LOG4J_TOOLS_ROOT_LOGLEVEL", "the command line tools"),
        ("CONNECT_LOG4J_APPENDER_STDOUT_LAYOUT_CONVERSIONPATTERN", ONE_LOG),
        ("CONNECT_LOG4J_LOGGER_", ONE_LOG),
        ("CONNECT_CUB_KAFKA_TIMEOUT", "a worker does not wait"),
        ("CUB_CLASSPATH", "a worker does not wait"),
        ("CONNECT_PROPERTIES_DIR", "no properties file"),
        ("CONNECT_URL", "it is for mm2.sh"),
        ("CONNECT_", "it does not name a key"),
        ("KAFKA_HEAP_OPTS", OTHER_JVM),
        ("KAFKA_JMX_PORT", "there is no JMX"),
        ("JMXPORT", "there is no JMX"),
        ("CLASSPATH", NO_PLUGINS),
    ],
)
def test_what_has_no_effect(name: str, begins: str) -> None:
    reason = why_unused(name, "x")
    assert reason is not None
    assert reason.startswith(begins)


@pytest.mark.parametrize(
    "name",
    [
        "CONNECT_BOOTSTRAP_SERVERS",
        "CONNECT_PLUGIN_PATH",
        "CONNECT_REST_PORT",
        "CONNECT_SASL_KERBEROS_SERVICE_NAME",
        "CONNECT_LOG4J_ROOT_LOGLEVEL",
        "CONNECT_LOG4J_LOGGERS",
        "CONNECT_LOG4J_LOGGER_IO_DEBEZIUM",
        "HEAP_OPTS",
        "HOST_NAME",
        "PATH",
    ],
)
def test_what_sets_something_or_is_nothing_to_us(name: str) -> None:
    assert why_unused(name, "28082") is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CONNECT_SERVICE_HOST", "10.0.0.7"),
        ("CONNECT_SERVICE_PORT_HTTP", "8083"),
        ("CONNECT_PORT", "tcp://10.0.0.7:8083"),
        ("CONNECT_PORT_8083_TCP_ADDR", "10.0.0.7"),
        ("CONNECT_REST_PORT", "tcp://10.0.0.7:8083"),
    ],
)
def test_variables_of_a_kubernetes_service_named_connect(name: str, value: str) -> None:
    assert why_unused(name, value) == OF_KUBERNETES


def test_debeziums_own_names_count_beside_its_sign_only() -> None:
    environ = {"ENABLE_DEBEZIUM_SCRIPTING": "true", "CLASSPATH": "/x", "HOST_NAME": "h"}
    assert unused_warnings(environ, is_debezium=False) == [f"CLASSPATH: no effect: {NO_PLUGINS}"]
    assert unused_warnings(environ, is_debezium=True) == [
        f"CLASSPATH, ENABLE_DEBEZIUM_SCRIPTING: no effect: {NO_PLUGINS}",
        "HOST_NAME: no effect: set REST_HOST_NAME and ADVERTISED_HOST_NAME",
    ]


def test_empty_variables_are_not_worth_a_line() -> None:
    assert unused_warnings({"KAFKA_HEAP_OPTS": ""}, is_debezium=False) == []


@pytest.mark.parametrize("options", ["", LOGIN, f"{LOGIN} -Djava.security.krb5.conf=/etc/krb5"])
def test_java_options_that_are_read(options: str) -> None:
    assert unused_warnings({"KAFKA_OPTS": options}, is_debezium=False) == []


@pytest.mark.parametrize("options", [f"{LOGIN} -Dpassword=planted-1", "-javaagent:planted-1 '"])
def test_java_options_without_effect(options: str) -> None:
    (line,) = unused_warnings({"KAFKA_OPTS": options}, is_debezium=False)
    assert line.startswith("KAFKA_OPTS: of its options, only -D of ")
    assert all(name in line for name in READ_OPTIONS)
    assert "planted" not in line


def test_beside_a_file_the_variables_of_kafkas_scripts_are_explained() -> None:
    found = jvm_warnings(
        {
            "KAFKA_OPTS": f"{LOGIN} -javaagent:/opt/jmx_exporter.jar=9404:/etc/secret.yml",
            "KAFKA_HEAP_OPTS": "-Xmx2g",
            "KAFKA_JMX_OPTS": "-Dcom.sun.management.jmxremote",
            "JMX_PORT": "9999",
            "CLASSPATH": "/usr/share/java",
            "CONNECT_REST_PORT": "8083",
        }
    )
    jmx, heap, options = sorted(found)
    assert jmx == f"JMX_PORT, KAFKA_JMX_OPTS: no effect: {NO_JMX}"
    assert heap.endswith("it is for the JVM of Kafka Connect; spark.driver.memory sizes Spark's")
    assert options.startswith("KAFKA_OPTS: of its options, only -D of ")
    assert options.endswith(
        "no Java agent is loaded: there is no JMX here; /metrics has the metrics (docs/metrics.md)"
    )
    assert "exporter" not in "".join(found)


def test_beside_a_file_a_login_alone_is_no_warning() -> None:
    assert jvm_warnings({"KAFKA_OPTS": LOGIN, "PATH": "/bin"}) == []
