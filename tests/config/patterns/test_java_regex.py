"""Java regular expressions said in Python."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.config.config_def import BadValue
from sparkmirror.config.patterns.java_regex import compile_patterns

TOPIC = "abcXYZ019._-"


@pytest.mark.parametrize(
    ("patterns", "matching", "other"),
    [
        pytest.param([".*"], ["", "a", "a.b"], [], id="all"),
        pytest.param(["topic1"], ["topic1"], ["topic2", "topic11", "xtopic1"], id="name"),
        pytest.param(["topic1", "topic2"], ["topic1", "topic2"], ["topic3", "topic"], id="names"),
        pytest.param(["a.b"], ["a.b", "axb"], ["a.b.c"], id="dot-is-any-character"),
        pytest.param([r"a\.b"], ["a.b"], ["axb"], id="escaped-dot"),
        pytest.param(["a|b", "c"], ["a", "b", "c"], ["ab", "a|b"], id="alternatives-inside"),
        pytest.param(["a", "ab"], ["a", "ab"], ["abb"], id="longer-alternative"),
        pytest.param(["(orders", "payments)-.*"], ["orders-1"], ["orders", "(orders"], id="comma"),
        pytest.param([r"\Qa.b\E.c"], ["a.bxc"], ["axbxc"], id="quoted"),
        pytest.param([r"\Qa*"], ["a*"], ["aa"], id="quoted-to-the-end"),
        pytest.param(["(?i)abc", "d"], ["ABC", "D"], ["e"], id="flag-reaches-later-elements"),
        pytest.param(["a", "(?i)b"], ["a", "B"], ["A"], id="flag-spares-earlier-elements"),
        pytest.param(["(x(?i)b|c)d"], ["xBd", "Cd"], ["XBd", "xBD"], id="flag-ends-with-group"),
        pytest.param(["(?i:a)b"], ["Ab"], ["AB"], id="flag-group"),
        pytest.param(["(?i)a(?-i)b"], ["Ab"], ["AB"], id="flag-off"),
        pytest.param([r"\p{Alpha}+"], ["aZ"], ["a1", "\u00e9"], id="posix-alpha"),
        pytest.param([r"\p{Digit}\P{Digit}"], ["1a"], ["11"], id="posix-negated"),
        pytest.param([r"[\p{Alnum}._]+"], ["a.1_"], ["a-1"], id="posix-inside-set"),
        pytest.param([r"\p{Lower}\p{Upper}"], ["aA"], ["Aa"], id="posix-case"),
        pytest.param([r"\p{Punct}"], list("!-./[]^_`{|}~\\"), ["a"], id="posix-punct"),
        pytest.param([r"\p{L}+"], ["a\u00e9\u044f"], ["a1", "a_"], id="unicode-letters"),
        pytest.param([r"\pL"], ["\u00e9"], ["1"], id="unicode-letter-short"),
        pytest.param([r"\d+"], ["12"], ["\u0661"], id="digits-are-ascii"),
        pytest.param([r"\w"], ["a"], ["\u00e9"], id="words-are-ascii"),
        pytest.param(["a++b", "a*+c", "(?>a|ab)d"], ["aab", "c", "ad"], ["abd"], id="possessive"),
        pytest.param(["(?<n>a|b)-\\k<n>"], ["a-a", "b-b"], ["a-b"], id="named-group"),
        pytest.param([r"(a)\1"], ["aa"], ["ab"], id="back-reference"),
        pytest.param(["(?!test).*"], ["prod"], ["test1"], id="look-ahead"),
        pytest.param([".*(?<!-dlq)"], ["a"], ["a-dlq"], id="look-behind"),
        pytest.param(["[a-c&~|]"], ["b", "&", "~", "|"], ["d"], id="set-with-signs"),
        pytest.param(["[+--]"], ["+", ",", "-"], ["."], id="set-range-to-hyphen"),
        pytest.param(["[]a]"], ["]", "a"], ["b"], id="set-with-bracket"),
        pytest.param(["[^a\\-b]"], ["c"], ["a", "-"], id="negated-set"),
        pytest.param(["a{2}b{1,}c{0,1}"], ["aab", "aabbc"], ["ab"], id="counts"),
        pytest.param([r"\x41\u0042\x{43}"], ["ABC"], ["abc"], id="code-points"),
        pytest.param([r"^a$", r"\Ab\z"], ["a", "b"], ["a\n", "b\n"], id="anchors"),
        pytest.param([r"\h\v\H\V"], [" \nab"], ["abab"], id="java-spaces"),
        pytest.param([r"[\h]\e"], ["\t\x1b"], ["a\x1b"], id="more-java-escapes"),
        pytest.param([r"\-\#\_"], ["-#_"], ["a"], id="escaped-signs"),
    ],
)
def test_patterns_match_whole_names(
    patterns: list[str], matching: list[str], other: list[str]
) -> None:
    compiled = compile_patterns(patterns)
    assert compiled is not None
    for method in (compiled.match, compiled.search, compiled.fullmatch):
        assert [name for name in matching if not method(name)] == []
        assert [name for name in other if method(name)] == []


def test_empty_list_is_no_pattern() -> None:
    assert compile_patterns([]) is None


@pytest.mark.parametrize(
    ("patterns", "reason", "remedy"),
    [
        pytest.param(["*"], "nothing to repeat (in '*')", "not file globs: write .*", id="glob"),
        pytest.param(["a", "["], "a [ is not closed (in '[')", "correct", id="open-set"),
        pytest.param(["(a"], "a ( is not closed", "correct", id="open-group"),
        pytest.param(["a)"], "a ) has no (", "correct", id="closed-group"),
        pytest.param(["a{1", "3}"], "a { that is no count", r"write \{", id="comma-in-count"),
        pytest.param(["{a}"], "a { that is no count", r"write \{", id="bare-brace"),
        pytest.param([r"\p{Greek}"], r"\p{Greek} is not supported", "Alnum", id="unicode-block"),
        pytest.param([r"[\p{L}]"], r"\p{L} is not supported", "list", id="letters-inside-set"),
        pytest.param([r"[\P{Alpha}]"], r"\P{Alpha} inside [ ]", "list", id="negated-inside-set"),
        pytest.param([r"\p"], r"\p without a class name", r"\p{Alpha}", id="no-class"),
        pytest.param(["[a-z&&[^b]]"], "sets of sets", "list", id="intersection"),
        pytest.param(["[a[b]]"], "sets of sets", "list", id="union"),
        pytest.param(["a\\"], "ends with a backslash", "correct", id="lone-backslash"),
        pytest.param(["(?x)a b"], "the flag x", "only i, m and s", id="comments-flag"),
        pytest.param(["(?P<a>b)"], "unknown group (?P", "correct", id="python-syntax"),
        pytest.param([r"\y"], r"the escape \y", "correct", id="unknown-escape"),
        pytest.param([r"[\b]"], r"\b means nothing inside", "correct", id="boundary-in-set"),
        pytest.param([r"\xg"], r"\x without a code point", r"\xhh", id="bad-code-point"),
        pytest.param([r"\x{110000}"], r"\x without a code point", r"\xhh", id="no-code-point"),
        pytest.param([r"\k"], r"\k without a group name", "correct", id="no-group-name"),
        pytest.param(["(?<=a*)b"], "look-behind", "correct", id="wide-look-behind"),
        pytest.param(["a{2,1}"], "not a regular expression", "correct", id="reversed-count"),
    ],
)
def test_bad_pattern_is_rejected_with_reason(patterns: list[str], reason: str, remedy: str) -> None:
    with pytest.raises(BadValue) as caught:
        compile_patterns(patterns)
    assert reason in caught.value.reason
    assert remedy in caught.value.remedy


@given(st.lists(st.text(TOPIC, min_size=1, max_size=6), min_size=1, max_size=4), st.text(TOPIC))
@settings(derandomize=True, max_examples=200)
def test_escaped_names_match_themselves_only(names: list[str], other: str) -> None:
    compiled = compile_patterns([re.sub(r"([.-])", r"\\\1", name) for name in names])
    assert compiled is not None
    assert all(compiled.match(name) for name in names)
    assert bool(compiled.match(other)) == (other in names)


@given(st.text("ab.*+?|()[]{}^$\\Q1,-& ip", max_size=12))
@settings(derandomize=True, max_examples=500)
def test_any_text_compiles_or_is_rejected(pattern: str) -> None:
    assert outcome(pattern) in ("compiled", "refused")


def outcome(pattern: str) -> str:
    try:
        compile_patterns([pattern])
    except BadValue:
        return "refused"
    return "compiled"
