"""A source connector over fakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.connect.fakes import Connector

SETTINGS = {"a->b.topics": "t.*", "tasks.max": "2", "replication.factor": "3"}


@pytest.fixture
def connector(tmp_path: Path) -> Connector:
    return Connector(tmp_path, SETTINGS)
