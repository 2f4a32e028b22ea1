"""How answers of two workers are compared, without workers."""

from __future__ import annotations

import pytest

from tests.worker_cluster.scene import unordered

STATUS = {"name": "x", "tasks": [{"id": 0, "worker": "h:12"}, {"id": 1, "worker": "h:21"}]}


def test_lists_in_another_order_are_the_same() -> None:
    turned = {"tasks": [{"worker": "h:21", "id": 1}, {"id": 0, "worker": "h:12"}], "name": "x"}
    assert unordered(turned) == unordered(STATUS)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(
            {"name": "x", "tasks": [{"id": 1, "worker": "h:12"}, {"id": 0, "worker": "h:21"}]},
            id="values swapped",
        ),
        pytest.param({"name": "x", "tasks": [{"id": 0, "worker": "h:12"}]}, id="one missing"),
        pytest.param({**STATUS, "name": "y"}, id="another name"),
    ],
)
def test_other_content_of_the_same_letters_is_not_the_same(other: dict[str, object]) -> None:
    assert unordered(other) != unordered(STATUS)
