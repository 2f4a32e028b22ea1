"""Names and values in errors: those of the user's file, and never a secret."""

from __future__ import annotations

import pytest

from sparkmirror.config.findings import Findings, Origin
from sparkmirror.errors import ConfigErrors


def test_equal_errors_and_warnings_are_kept_once() -> None:
    findings = Findings("f")
    for _ in range(2):
        findings.error("a", "1", "bad", "fix")
        findings.warn("careful")
    assert [str(error) for error in findings.errors] == ["f: a=1: bad; fix"]
    assert findings.warnings == ("f: careful",)


def test_error_is_reported_under_the_name_in_the_file() -> None:
    top = Findings("f", {"source.consumer.x": Origin("A.consumer.x", "${file:p:k}")})
    top.within({"x": "source.consumer.x"}).error("x", "resolved secret", "bad")
    assert str(top.errors[0]) == "f: A.consumer.x=${file:p:k}: bad"


@pytest.mark.parametrize(
    "key", ["ssl.key.password", "a.sasl.jaas.config", "x.client.secret", "ssl.keystore.key"]
)
def test_secret_value_is_hidden(key: str) -> None:
    findings = Findings()
    findings.error(key, "hunter2", "bad")
    assert str(findings.errors[0]) == f"{key}=[hidden]: bad"


def test_provided_values_are_in_no_part_of_an_error_however_short() -> None:
    top = Findings("f")
    top.note_provided("a.x", "${env:X}", frozenset({"7", "abc"}))
    view = top.within({"x": "a.x"})
    view.error("x", "7", "7 is less than 17", "not abc, but abcd")
    view.warn_key("x", "is 7")
    assert str(top.errors[0]) == "f: a.x=${env:X}: [hidden] is less than 17; not [hidden], but abcd"
    assert top.warnings == ("f: a.x: is [hidden]",)
    top.error("b.x", "7", "7 is odd")
    assert str(top.errors[1]) == "f: b.x=7: 7 is odd"


def test_views_share_what_they_find() -> None:
    top = Findings()
    view = top.renamed({})
    view.error("a", None, "missing")
    view.warn_key("b", "hm")
    assert len(top.errors) == 1
    assert top.warnings == ("b: hm",)
    with pytest.raises(ConfigErrors):
        top.raise_errors()


def test_nothing_found_raises_nothing() -> None:
    findings = Findings()
    findings.warn("only a warning")
    findings.raise_errors()
    assert findings.errors == ()
