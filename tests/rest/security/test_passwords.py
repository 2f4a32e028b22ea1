"""Plain and hashed passwords of a file of users."""

from __future__ import annotations

import pytest

from sparkmirror.config.config_def import BadValue
from sparkmirror.rest.security.passwords import hash_password, parse_password

# RFC 7914, section 12: scrypt of "pleaseletmein" with the salt "SodiumChloride".
_SCRYPT = (
    "$scrypt$ln=14,r=8,p=1$U29kaXVtQ2hsb3JpZGU$"
    "cCO9yzr9c0hGHAbNgf046/2o+7qQT44+qbVD9lRdofLVQylVYT8Pz2LUlwUkKpr55h6F3A1lHkDfzwF7RVdYhw"
)
# RFC 7914, section 11: PBKDF2-HMAC-SHA-256 of "passwd" with the salt "salt" and one round.
_PBKDF2 = (
    "$pbkdf2-sha256$1$c2FsdA$"
    "VawEblbjCJ/sFpHCJUS2BflBhSFt3gRl5oudV8INrLxJypzM8Xm2RZkWZLOdd.8xfHG4RbHjC9UJESBB06GXgw"
)


@pytest.mark.parametrize(
    ("line", "password", "is_hashed"),
    [
        ("secret", "secret", False),
        ("$1$not-one-of-ours", "$1$not-one-of-ours", False),
        (_SCRYPT, "pleaseletmein", True),
        (_PBKDF2, "passwd", True),
    ],
    ids=["plain", "plain with dollars", "scrypt", "pbkdf2"],
)
def test_password_of_a_line(line: str, password: str, is_hashed: bool) -> None:
    parsed = parse_password(line)
    assert parsed.is_hashed == is_hashed
    assert parsed.fits(password)
    assert not parsed.fits(password + " ")
    assert not parsed.fits("")


def test_hash_of_any_text_fits_only_it() -> None:
    line = hash_password("pa:ss w\u00f6rd")
    assert line.isascii()
    assert parse_password(line).fits("pa:ss w\u00f6rd")
    assert not parse_password(line).fits("pa:ss word")
    assert hash_password("pa:ss w\u00f6rd") != line


@pytest.mark.parametrize(
    "line",
    [
        "$scrypt$",
        "$scrypt$ln=14,r=8$YQ$YQ",
        "$scrypt$ln=30,r=8,p=1$YQ$YQ",
        "$scrypt$ln=14,r=0,p=1$YQ$YQ",
        "$scrypt$ln=16,r=1,p=1$YQ$YQ",
        "$scrypt$ln=14,r=8,p=99$YQ$YQ",
        "$scrypt$ln=14,r=8,p=1$Y!$YQ",
        "$scrypt$ln=14,r=8,p=1$\u00e4$YQ",
        "$scrypt$ln=14,r=8,p=1$YQ$YQ",
        "$pbkdf2-sha256$1$YQ$=",
        "$pbkdf2-sha256$0$YQ$YQ",
        "$pbkdf2-sha256$99999999$YQ$YQ",
    ],
)
def test_hash_that_cannot_be_read_is_an_error(line: str) -> None:
    with pytest.raises(BadValue, match="looks hashed") as caught:
        parse_password(line)
    assert line not in str(caught.value)


def test_password_does_not_print_itself() -> None:
    assert "secret" not in repr(parse_password("secret"))
