"""One broker with an authorizer for all tests of permissions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.permissions.guarded import Guarded, start_guarded


@pytest.fixture(scope="session")
def guarded() -> Iterator[Guarded]:
    with start_guarded() as cluster:
        yield cluster
