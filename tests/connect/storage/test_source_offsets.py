"""Offsets go to the worker's own cluster, wherever the records go."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.config.connector_spec import parse_connector
from sparkmirror.connect.storage.source_offsets import own_writer
from tests.connect.herder_fakes import CONFIG, worker_file


@pytest.mark.parametrize(
    ("servers", "is_elsewhere"),
    [("127.0.0.1:1", False), ("127.0.0.1:1,127.0.0.1:2", False), ("127.0.0.1:2", True)],
)
def test_offsets_have_their_own_writer_when_records_go_elsewhere(
    tmp_path: Path, servers: str, is_elsewhere: bool
) -> None:
    config = {**CONFIG, "producer.override.bootstrap.servers": servers}
    found = parse_connector(config, worker_file(tmp_path))
    assert (own_writer(found.worker, found.config.producer, "n") is not None) == is_elsewhere
