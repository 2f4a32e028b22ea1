"""What the JVM of Spark's driver says, and what happens when it is gone."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JNetworkError

from sparkmirror.errors import MirrorError
from sparkmirror.spark.session import SparkEngine


def engine_of(context: object) -> SparkEngine:
    engine = SparkEngine.__new__(SparkEngine)
    engine._context = context
    engine.is_local = True
    return engine


def test_a_session_that_was_stopped_has_no_figures() -> None:
    engine = engine_of(SimpleNamespace(_jsc=None, _jvm=None))
    with pytest.raises(MirrorError, match="does not respond"):
        engine.jvm_figures()


def test_a_jvm_that_was_killed_has_no_figures() -> None:
    def gone() -> object:
        raise Py4JNetworkError("Error while sending or receiving")

    engine = engine_of(SimpleNamespace(_jsc=SimpleNamespace(sc=gone), _jvm=None))
    with pytest.raises(MirrorError, match="does not respond"):
        engine.jvm_figures()
