"""Logins, passwords and login configs of any text: read or rejected."""

from __future__ import annotations

import base64

from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.config.config_def import BadValue
from sparkmirror.config.files.java_options import section_of
from sparkmirror.rest.security.passwords import parse_password
from sparkmirror.rest.security.users import parse_basic

_LATIN = st.characters(max_codepoint=255)
_HASHED = st.from_regex(
    r"\A\$(scrypt\$ln=\d{1,2},r=\d,p=\d|pbkdf2-sha256\$\d{1,3})\$[\w+./=!]*\$[\w+./=]*\Z"
)
_JAAS = st.lists(
    st.sampled_from(["KafkaConnect", " ", "{", "}", ";", '"', "'", "\\", "/*", "*/", "//", "\n"])
).map("".join)


@settings(derandomize=True, max_examples=300)
@given(st.text(_LATIN) | st.binary().map(lambda raw: f"Basic {base64.b64encode(raw).decode()}"))
def test_any_header_is_a_login_or_none(header: str) -> None:
    found = parse_basic(header)
    assert found is None or (found[0] and ":" not in found[0])


@settings(derandomize=True, max_examples=300)
@given(st.text() | _HASHED)
def test_any_password_is_read_or_rejected_without_being_shown(text: str) -> None:
    try:
        parsed = parse_password(text)
    except BadValue as bad:
        shown = bad.reason
    else:
        shown = repr(parsed)
        assert parsed.fits(text) != parsed.is_hashed
    assert len(text) < 9 or text not in shown


@settings(derandomize=True, max_examples=300)
@given(_JAAS)
def test_any_login_config_has_the_section_or_not(text: str) -> None:
    try:
        found = "{" + section_of(text, "KafkaConnect") + "}"
    except BadValue:
        found = ""
    assert found in text
