"""SCRAM with the examples of RFC 7677 and of RFC 5802's grammar."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from sparkmirror.errors import AuthenticationError
from sparkmirror.wire.sasl.scram import Scram, ScramLogin

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = (
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
)


def exchange(user: str = "user", password: str = "pencil", *, token: bool = False) -> Scram:
    return Scram(ScramLogin("SCRAM-SHA-256", user, password, token=token), NONCE)


def test_example_of_rfc_7677() -> None:
    scram = exchange()
    assert scram.start() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    final = scram.respond(SERVER_FIRST)
    assert final == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert scram.respond(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None


def test_sha_512_against_a_server_of_our_own() -> None:
    """There is no published example: the server's half is written here, from the RFC."""
    scram = Scram(ScramLogin("SCRAM-SHA-512", "alice", "p\u00e4ss"), "abc")
    first = scram.start().decode()
    server_first = f"r=abcdef,s={base64.b64encode(b'salt').decode()},i=8192"
    final = (scram.respond(server_first.encode()) or b"").decode()
    without_proof, _, proof = final.rpartition(",p=")
    message = f"{first[3:]},{server_first},{without_proof}".encode()
    salted = hashlib.pbkdf2_hmac("sha512", "p\u00e4ss".encode(), b"salt", 8192)
    client_key = hmac.digest(salted, b"Client Key", "sha512")
    signature = hmac.digest(hashlib.sha512(client_key).digest(), message, "sha512")
    recovered = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
    assert recovered == client_key
    server_key = hmac.digest(salted, b"Server Key", "sha512")
    verifier = base64.b64encode(hmac.digest(server_key, message, "sha512"))
    assert scram.respond(b"v=" + verifier) is None


@pytest.mark.parametrize(
    ("user", "sent"),
    [("a,b", b"a=2Cb"), ("a=b", b"a=3Db"), ("=2C", b"=3D2C"), ("\u00e9", "\u00e9".encode())],
)
def test_user_names_are_escaped(user: str, sent: bytes) -> None:
    assert exchange(user).start() == b"n,,n=" + sent + b",r=" + NONCE.encode()


def test_delegation_tokens_are_marked() -> None:
    assert exchange(token=True).start().endswith(b",tokenauth=true")


BAD_FIRST = {
    "empty": b"",
    "not text": b"\xff\xfe",
    "another nonce": b"r=zzz,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    "only our nonce": b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    "no salt": b"r=rOprNGfwEbeRWgbNEkqOx,i=4096",
    "salt that is none": b"r=rOprNGfwEbeRWgbNEkqOx,s=!!!!,i=4096",
    "no number": b"r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=many",
    "too few": b"r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4095",
    "too many": b"r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=99999999",
}


@pytest.mark.parametrize("response", BAD_FIRST.values(), ids=BAD_FIRST)
def test_an_offer_that_makes_no_sense_is_refused(response: bytes) -> None:
    scram = exchange()
    scram.start()
    with pytest.raises(AuthenticationError, match="SCRAM-SHA-256"):
        scram.respond(response)


BAD_FINAL = {
    "an error": (b"e=invalid-proof", "invalid-proof"),
    "a wrong signature": (b"v=AAAA", "does not know the password"),
    "no signature": (b"x=y", "does not follow"),
    "no base64": (b"v=?", "does not follow"),
    "empty": (b"", "does not follow"),
}


@pytest.mark.parametrize(("response", "reason"), BAD_FINAL.values(), ids=BAD_FINAL)
def test_a_broker_that_does_not_prove_itself_is_refused(response: bytes, reason: str) -> None:
    scram = exchange()
    scram.start()
    scram.respond(SERVER_FIRST)
    with pytest.raises(AuthenticationError, match=reason):
        scram.respond(response)


def test_the_slow_part_is_done_once(monkeypatch: pytest.MonkeyPatch) -> None:
    login = ScramLogin("SCRAM-SHA-256", "user", "pencil")
    keys = {login.salted_password(b"salt", 4096) for _ in range(3)}
    monkeypatch.setattr(hashlib, "pbkdf2_hmac", None)
    assert {login.salted_password(b"salt", 4096)} == keys
