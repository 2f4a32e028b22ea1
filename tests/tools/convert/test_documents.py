"""One resource is found among the documents of a file, or every reason against it is reported."""

from __future__ import annotations

import pytest

from sparkmirror.errors import ConfigErrors
from sparkmirror.tools.convert.documents import find_resource
from tests.tools.convert.resources import FILE, SET_UP_B, errors_of, run

TOPIC = "apiVersion: kafka.strimzi.io/v1\nkind: KafkaTopic\nmetadata: {name: orders}\n"
REMEDY = "name a file with a resource of kind KafkaMirrorMaker2"


def indented(text: str) -> str:
    first, *rest = text.splitlines()
    return "\n".join([f"  - {first}", *(f"    {line}" for line in rest)])


def test_other_documents_are_listed() -> None:
    done = run(f"{TOPIC}---\n{SET_UP_B}")
    assert done.name == "mirror"
    assert ("document 1 (KafkaTopic orders)", "is not a KafkaMirrorMaker2") in [
        note[:2] for note in done.not_carried
    ]


@pytest.mark.parametrize("kind", ["List", "KafkaMirrorMaker2List"])
def test_the_resource_may_be_in_a_list(kind: str) -> None:
    text = f"apiVersion: v1\nkind: {kind}\nitems:\n{indented(TOPIC)}\n{indented(SET_UP_B)}\n"
    value, others = find_resource(text, FILE)
    assert isinstance(value, dict)
    assert value["metadata"] == {"name": "mirror"}
    assert [note.path for note in others] == ["document 1, element 1 (KafkaTopic orders)"]


@pytest.mark.parametrize(
    ("text", "errors"),
    [
        ("", [f"{FILE}: the file has no documents; {REMEDY}"]),
        ("# nothing", [f"{FILE}: the file has no documents; {REMEDY}"]),
        (TOPIC, [f"{FILE}: kind=KafkaTopic: is not KafkaMirrorMaker2; {REMEDY}"]),
        ("a: b", [f"{FILE}: kind: is missing; {REMEDY}"]),
        ("just words", [f"{FILE}: kind: is not a resource of Kubernetes; {REMEDY}"]),
        (
            f"{TOPIC}---\nkind: Secret\n",
            [
                f"{FILE}: document 1: kind=KafkaTopic: is not KafkaMirrorMaker2; {REMEDY}",
                f"{FILE}: document 2: kind=Secret: is not KafkaMirrorMaker2; {REMEDY}",
            ],
        ),
        (
            f"{SET_UP_B}---\n{SET_UP_B}",
            [
                (
                    f"{FILE}: the file has 2 resources of kind KafkaMirrorMaker2: mirror, mirror; "
                    "put each into a separate file"
                )
            ],
        ),
    ],
)
def test_files_without_one_resource(text: str, errors: list[str]) -> None:
    assert errors_of(text) == errors


def test_a_file_that_is_not_yaml() -> None:
    with pytest.raises(ConfigErrors, match=f"^{FILE}: line 2: not YAML: .*; correct it$"):
        find_resource("a: 1\n b: [", FILE)
