"""Spark's settings for its own traffic, and what all users may see of it."""

from __future__ import annotations

import re

import pytest
from pyspark import SparkConf

from sparkmirror.config.masking import remember_provided
from sparkmirror.spark import session
from sparkmirror.spark.session import complete_settings
from sparkmirror.spark.spark_security import (
    SECURE_DEFAULTS,
    check_security,
    no_secret,
    secure_defaults,
)

CLUSTERS = ["spark://h:7077", "yarn", "k8s://https://h:6443"]


@pytest.mark.parametrize("master", CLUSTERS)
def test_clusters_are_authenticated_and_encrypted(master: str) -> None:
    settings = complete_settings({"spark.master": master}, 1)
    assert settings.items() >= SECURE_DEFAULTS.items()


def test_local_mode_has_no_traffic() -> None:
    assert not complete_settings({"spark.master": "local[2]"}, 1).keys() & SECURE_DEFAULTS.keys()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, SECURE_DEFAULTS, id="nothing"),
        pytest.param({"spark.authenticate": "true"}, SECURE_DEFAULTS, id="what is set anyway"),
        # Spark refuses to start with encryption, but without authentication.
        pytest.param({"spark.authenticate": "false"}, {}, id="turned off"),
        pytest.param(
            {"spark.ssl.rpc.enabled": "true"},
            {"spark.authenticate": "true", "spark.io.encryption.enabled": "true"},
            id="TLS instead",
        ),
    ],
)
def test_the_user_may_decide_otherwise(given: dict[str, str], expected: dict[str, str]) -> None:
    assert secure_defaults(given) == expected


@pytest.mark.parametrize(
    ("given", "text"),
    [
        pytest.param({}, "", id="nothing"),
        pytest.param({"spark.ssl.rpc.enabled": "true"}, "", id="TLS instead"),
        pytest.param(
            {"spark.authenticate": "false"},
            "spark.authenticate=false: Spark's traffic with yarn is neither authenticated nor",
            id="not authenticated",
        ),
        pytest.param(
            {"spark.network.crypto.enabled": "false"},
            "spark.network.crypto.enabled=false: Spark's traffic with yarn is not encrypted",
            id="not encrypted",
        ),
    ],
)
def test_unprotected_traffic_is_logged(
    given: dict[str, str], text: str, caplog: pytest.LogCaptureFixture
) -> None:
    check_security(complete_settings({"spark.master": "yarn", **given}, 1), "yarn")
    assert [message[: len(text)] for message in caplog.messages] == ([text] if text else [])


def test_missing_secret_of_a_standalone_cluster_names_the_remedy() -> None:
    text = str(no_secret("spark://h:7077"))
    assert "spark.authenticate.secret" in text
    assert "spark://h:7077 is a standalone cluster" in text
    assert "spark.authenticate=false" in text


def test_provided_values_are_neither_on_the_command_line_nor_on_sparks_page() -> None:
    remember_provided("provided-to-spark-1")
    given = {"spark.master": "local[1]", "spark.hadoop.x": "a provided-to-spark-1", "spark.y": "1"}
    settings = complete_settings(given, 1)
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    shown = dict(session._shown(conf).getAll())
    assert "spark.y" in shown
    assert "spark.hadoop.x" not in shown
    hidden = re.compile(settings["spark.redaction.regex"].replace("(?i)", ""), re.IGNORECASE)
    found = {key for key in (*given, "spark.hadoop.xy", "x", "my.password") if hidden.search(key)}
    assert found == {"spark.hadoop.x", "x", "my.password"}


def test_without_provided_values_spark_hides_what_it_always_hides() -> None:
    assert "spark.redaction.regex" not in complete_settings({"spark.y": "plain"}, 1)


def test_secrets_are_not_for_the_command_line() -> None:
    conf = SparkConf(loadDefaults=False).setAll(
        [
            ("spark.master", "local[1]"),
            ("spark.authenticate", "true"),
            ("spark.authenticate.secret", "a"),
            ("spark.authenticate.secret.file", "/b"),
            ("spark.ssl.keyStorePassword", "c"),
            ("spark.hadoop.fs.s3a.access.key", "d"),
            ("spark.kubernetes.authenticate.oauthToken", "e"),
            ("spark.driver.extraJavaOptions", "-Xss1m"),
        ]
    )
    assert dict(session._shown(conf).getAll()) == {
        "spark.master": "local[1]",
        "spark.authenticate": "true",
        "spark.authenticate.secret.file": "/b",
        "spark.driver.extraJavaOptions": "-Xss1m",
    }
