"""What people give to `sparkmirror convert`: resources in YAML."""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.errors import MirrorError
from sparkmirror.tools.convert.conversion import Format, convert
from tests.fuzz.target import Choices, Target
from tests.tools.convert.resources import SET_UP_B, V1

FORMATS = tuple(Format)


def run_resource(data: bytes) -> None:
    """A resource, to one of the formats."""
    choices = Choices(data)
    format_ = choices.pick(FORMATS)
    try:
        done = convert(choices.rest().decode(errors="replace"), "file", format_, "image")
    except MirrorError as error:
        assert str(error)  # noqa: PT017  its text must not fail either
        return
    assert "kubernetes.yaml" in done.files
    assert all(note.path and note.reason and note.instead for note in done.not_carried)
    assert all(text.encode() for text in done.files.values())


def resource_seeds() -> Iterator[bytes]:
    for number in range(len(FORMATS)):
        for text in (SET_UP_B, V1, f"kind: Secret\n---\n{SET_UP_B}"):
            yield bytes((number,)) + text.encode()


TARGETS = (Target("resource", run_resource, resource_seeds),)
