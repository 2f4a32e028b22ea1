"""`--clusters` with several words, wherever FILE is."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.cli.cluster_words import spread_clusters

A, B = ["--clusters", "A"], ["--clusters", "B"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("FILE", ["FILE"]),
        ("FILE --clusters A", ["FILE", *A]),
        ("FILE --clusters A B", ["FILE", *A, *B]),
        ("FILE --clusters A --clusters B", ["FILE", *A, *B]),
        ("FILE --clusters A B --log-level INFO", ["FILE", *A, *B, "--log-level", "INFO"]),
        ("--log-level INFO FILE --clusters A B", ["--log-level", "INFO", "FILE", *A, *B]),
        ("--clusters A B FILE", [*A, *B, "FILE"]),
        ("--clusters A B --log-level INFO FILE", [*A, *B, "--log-level", "INFO", "FILE"]),
        ("FILE --clusters", ["FILE", "--clusters"]),
    ],
)
def test_each_cluster_has_its_option(tmp_path: Path, line: str, expected: list[str]) -> None:
    file = tmp_path / "mm2.properties"
    file.touch()
    words = [str(file) if word == "FILE" else word for word in line.split()]
    assert spread_clusters(words) == [str(file) if word == "FILE" else word for word in expected]


def test_a_missing_file_is_not_mistaken_for_a_cluster() -> None:
    assert spread_clusters(["none.properties", "--clusters", "A", "B"]) == [
        "none.properties",
        *A,
        *B,
    ]
