"""The headers beside a stored position: which source log it is of."""

from __future__ import annotations

import pytest

from sparkmirror.mirror.positions.provenance import (
    LEADER_EPOCHS,
    TARGET_OFFSET,
    TOPIC_ID,
    Provenance,
    decode_provenance,
)

ID = bytes(range(16))


@pytest.mark.parametrize(
    "known",
    [
        Provenance(),
        Provenance(ID),
        Provenance(None, ((0, 0),)),
        Provenance(ID, ((0, 0), (7, 7), (8, 1 << 62)), 0),
    ],
)
def test_headers_both_ways(known: Provenance) -> None:
    assert decode_provenance(known.encode()) == known


def test_headers_golden() -> None:
    assert Provenance(ID, ((3, 0), (5, 120)), 41).encode() == (
        (LEADER_EPOCHS, b"3@0,5@120"),
        (TOPIC_ID, b"AAECAwQFBgcICQoLDA0ODw"),
        (TARGET_OFFSET, b"41"),
    )


def test_a_record_of_mirror_maker_has_none() -> None:
    assert decode_provenance(()) is None
    assert decode_provenance((("other", b"x"),)) is None


@pytest.mark.parametrize(
    "epochs", [b"x", b"3", b"3@", b"-1@0", b"3@0,2@5", b"3@9,4@5", b"3@0,", b"3@" + b"9" * 30]
)
def test_epochs_that_make_no_sense_are_unknown(epochs: bytes) -> None:
    found = decode_provenance(((LEADER_EPOCHS, epochs), (TARGET_OFFSET, b"-1")))
    assert found == Provenance()


@pytest.mark.parametrize("topic_id", [b"", b"short", b"AAECAwQFBgcICQoLDA0OD!", b"\xff" * 22])
def test_ids_that_make_no_sense_are_unknown(topic_id: bytes) -> None:
    assert decode_provenance(((LEADER_EPOCHS, b""), (TOPIC_ID, topic_id))) == Provenance()
