"""Log levels that variables of Confluent's and Debezium's images ask for."""

from __future__ import annotations

import pytest

from sparkmirror.config.findings import Findings
from sparkmirror.config.worker.log_variables import LEVELS, ROOT, is_log_level, log_levels
from sparkmirror.connect.runtime import loggers as worker_loggers

CONNECT = "org.apache.kafka.connect"


def test_words_are_those_of_the_rest_api() -> None:
    assert tuple(worker_loggers.LEVELS) == LEVELS
    assert worker_loggers.ROOT == ROOT


@pytest.mark.parametrize(
    ("environ", "levels"),
    [
        pytest.param({"CONNECT_LOG4J_ROOT_LOGLEVEL": "WARN"}, [(ROOT, "WARN")], id="root"),
        pytest.param({"CONNECT_LOG4J_ROOT_LOGLEVEL": '"debug"'}, [(ROOT, "DEBUG")], id="quoted"),
        pytest.param({"CONNECT_LOG4J_ROOT_LOGLEVEL": ""}, [], id="empty"),
        pytest.param(
            {"CONNECT_LOG4J_LOGGERS": f"{CONNECT}=DEBUG, org.reflections=ERROR"},
            [(CONNECT, "DEBUG"), ("org.reflections", "ERROR")],
            id="loggers",
        ),
        pytest.param(
            {"CONNECT_LOG4J_LOGGERS": "INFO, stdout"}, [(ROOT, "INFO")], id="log4j's root logger"
        ),
        pytest.param(
            {"CONNECT_LOG4J_LOGGER_ORG_APACHE_KAFKA_CONNECT": "TRACE, stdout"},
            [(CONNECT, "TRACE")],
            id="one logger",
        ),
        pytest.param(
            {"CONNECT_LOG4J_LOGGERS": f"{CONNECT}=OFF", "CONNECT_LOG4J_ROOT_LOGLEVEL": "ALL"},
            [(ROOT, "ALL"), (CONNECT, "OFF")],
            id="the root first",
        ),
        pytest.param({"LOG_LEVEL": "DEBUG", "CONNECT_GROUP_ID": "g"}, [], id="not Debezium's"),
    ],
)
def test_levels(environ: dict[str, str], levels: list[tuple[str, str]]) -> None:
    findings = Findings()
    assert list(log_levels(environ, findings, is_debezium=False)) == levels
    assert findings.errors == ()


def test_prefixed_root_level_is_stronger_than_debeziums() -> None:
    environ = {"LOG_LEVEL": "DEBUG", "CONNECT_LOG4J_ROOT_LOGLEVEL": "WARN"}
    *_, last = log_levels(environ, Findings(), is_debezium=True)
    assert last == (ROOT, "WARN")
    (only,) = log_levels({"LOG_LEVEL": "DEBUG"}, Findings(), is_debezium=True)
    assert only == (ROOT, "DEBUG")


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("CONNECT_LOG4J_ROOT_LOGLEVEL", "LOUD", "'LOUD' is not a log level"),
        ("CONNECT_LOG4J_LOGGERS", "a.b=LOUD", "'LOUD' for a.b is not a log level"),
        ("CONNECT_LOG4J_LOGGERS", "a.b=", "'' for a.b is not a log level"),
        ("CONNECT_LOG4J_LOGGERS", "a.b=INFO,c", "'C' is not a log level"),
    ],
)
def test_what_is_not_a_level(name: str, value: str, reason: str) -> None:
    findings = Findings()
    found = log_levels({name: value}, findings, is_debezium=False)
    assert [each for each in found if each.level not in LEVELS] == []
    assert [str(error) for error in findings.errors] == [
        f"{name}: {reason}; use one of {', '.join(LEVELS)}"
    ]


@pytest.mark.parametrize(
    ("name", "is_level"),
    [
        ("CONNECT_LOG4J_ROOT_LOGLEVEL", True),
        ("CONNECT_LOG4J_LOGGER_A", True),
        ("CONNECT_LOG4J_LOGGER_", False),
        ("CONNECT_LOG4J_TOOLS_ROOT_LOGLEVEL", False),
        ("CONNECT_GROUP_ID", False),
    ],
)
def test_which_variables_set_levels(name: str, is_level: bool) -> None:
    assert is_log_level(name) is is_level
