"""No expression of a user stops the process, and both engines say the same."""

from __future__ import annotations

import re
import threading

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sparkmirror.config.config_def import BadValue
from sparkmirror.config.files.providers import load_providers, resolve
from sparkmirror.config.findings import Findings
from sparkmirror.config.patterns import name_patterns
from sparkmirror.config.patterns.java_regex import compile_patterns
from sparkmirror.config.patterns.name_patterns import NamePattern
from sparkmirror.errors import MirrorError
from sparkmirror.rest.transport.headers import CrossOrigin

# Python's engine needs longer than anybody lives.
ENDLESS_NAME = "a" * 60


def compiled(*patterns: str) -> NamePattern:
    found = compile_patterns(patterns)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+b", "(a|a)*b", "(a|aa)+b", "([a-z]+)*\\d", "(.*a){25}b", "(x+x+)+y|(a*)*b"],
)
def test_endless_expressions_are_matched_in_linear_time(pattern: str) -> None:
    assert compiled(pattern).fullmatch(ENDLESS_NAME) is None
    assert name_patterns._re2(compiled(pattern).linear or "") is not None


@pytest.mark.parametrize("pattern", ["(?!b)(a+)+b", r"(a)(a+)+\1b", "(a+)+(?<=b)", "(?=a)(a|a)*b"])
def test_what_needs_the_other_engine_and_is_endless_is_an_error(pattern: str) -> None:
    endless = compiled(pattern)
    with pytest.raises(MirrorError, match="not done after 2 s") as caught:
        endless.fullmatch(ENDLESS_NAME)
    assert f"'{pattern}'" in str(caught.value)
    assert f"'{ENDLESS_NAME}'" in str(caught.value)
    # The next name has a new process.
    assert compiled("(?!b).*").fullmatch("after it") is True


def test_other_threads_run_while_a_name_takes_long() -> None:
    ticks = 0
    done = threading.Event()

    def match() -> None:
        with pytest.raises(MirrorError):
            compiled("(?!c)(a+)+b").fullmatch(ENDLESS_NAME)
        done.set()

    thread = threading.Thread(target=match)
    thread.start()
    while not done.wait(0.01):
        ticks += 1
    thread.join()
    assert ticks > 1


def test_killed_process_is_replaced() -> None:
    pattern = compiled("(?!killed).*")
    assert pattern.fullmatch("one") is True
    process = name_patterns._others._process
    assert process is not None
    process.kill()
    process.wait()
    assert pattern.fullmatch("two") is True


def test_names_are_requested_once() -> None:
    pattern = compiled("(?!asked).*")
    assert pattern.fullmatch("x") is True
    process, name_patterns._others._process = name_patterns._others._process, None
    try:
        assert pattern.fullmatch("x") is True
        assert name_patterns._others._process is None
    finally:
        name_patterns._others._process = process


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("a$\n", "a\n", True),
        ("a\\Z", "a", True),
        ("a\\z", "a", True),
        ("(?i)k", "\u212a", False),
        ("(?i)\u212a", "k", False),
        ("(?i)\\x{212a}", "k", False),
        ("\u00e9+", "\u00e9\u00e9", True),
        ("\\u00e9", "\u00e9", True),
        (".*", "\ud800", True),
        ("[\\S]", "\x0b", False),
        ("\\s", "\x0b", True),
        ("a{2000}", "a" * 2000, True),
    ],
)
def test_engines_agree_in_odd_cases(pattern: str, name: str, expected: bool) -> None:
    assert bool(compiled(pattern).fullmatch(name)) is expected


PARTS = r"""
    a b 1 . - \. \d \w \s \b [ab] [^a] [a-b1] \p{L} ( ) (?: (?i) (?i: | * + ? *? {2} {1,2} ^ $
    \p{Alnum} \Qa.\E \x41 (?<n>a) \Z \z []a] [\w.-] (?s)
"""


@given(st.lists(st.sampled_from(PARTS.split()), max_size=8), st.text("abAB1.- _", max_size=6))
@settings(derandomize=True, max_examples=2000, deadline=None)
def test_engines_agree(parts: list[str], name: str) -> None:
    try:
        pattern = compiled("".join(parts))
    except BadValue:
        assume(False)
    engine = None if pattern.linear is None else name_patterns._re2(pattern.linear)
    assume(engine is not None)
    expected = re.compile(pattern.python, re.ASCII).fullmatch(name) is not None
    assert bool(pattern.fullmatch(name)) == expected, pattern


def test_names_of_variables_are_matched_in_linear_time() -> None:
    props = {
        "config.providers": "env",
        "config.providers.env.class": (
            "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
        ),
        "config.providers.env.param.allowlist.pattern": "(A+)+_MIRROR$",
    }
    findings = Findings()
    providers = load_providers(props, findings, {"A_MIRROR": "found", "A" * 60: "hidden"})
    placeholders = {"one": "${env:A_MIRROR}", "other": "${env:" + "A" * 60 + "}"}
    assert resolve(placeholders, providers, findings)["one"] == "found"
    assert [error.key for error in findings.errors] == ["other"]


def test_origins_are_matched_in_linear_time() -> None:
    cors = CrossOrigin(r"https://([a-z]+\.?)+\.example\.com", "")
    assert cors.allows("https://a.b.example.com")
    assert not cors.allows("https://" + "a" * 60)
