"""docs/configuration.md says what the key tables say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sparkmirror.config.docs import main, render_configuration
from sparkmirror.config.keys.client_keys import CLIENT_KEYS
from sparkmirror.config.mirror_configs import CONNECTOR_KEYS
from sparkmirror.config.mm2 import load_mm2
from sparkmirror.config.mm2_keys import MM2_KEYS
from sparkmirror.config.worker.worker_file import WORKER_FILE_KEYS, load_worker
from sparkmirror.config.worker_config import WORKER_KEYS

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
DEFINITIONS = {
    **CONNECTOR_KEYS,
    **CLIENT_KEYS,
    "worker": WORKER_KEYS,
    "worker file": WORKER_FILE_KEYS,
    "mm2": MM2_KEYS,
}


def test_page_is_up_to_date() -> None:
    assert main(["--check", str(PAGE)]) == 0


@pytest.mark.parametrize("name", DEFINITIONS)
def test_every_key_is_on_the_page(name: str) -> None:
    text = render_configuration()
    assert [key.name for key in DEFINITIONS[name] if f"`{key.name}`" not in text] == []


def test_check_fails_for_another_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "docs" / "configuration.md"
    assert main(["--check", str(page)]) == 1
    assert "does not match the key tables" in capsys.readouterr().err
    assert main([str(page)]) == 0
    assert main(["--check", str(page)]) == 0
    page.write_text("other", "ascii")
    assert main(["--check", str(page)]) == 1


def write_example(number: int, path: Path) -> Path:
    examples = re.findall(r"```properties\n(.*?)```", render_configuration(), re.DOTALL)
    path.write_text(examples[number], "ascii")
    return path


def test_example_on_the_page_loads(tmp_path: Path) -> None:
    config = load_mm2(write_example(0, tmp_path / "mm2.properties"))
    assert config.spark == {"spark.master": "local[2]"}
    assert config.flows[0].source.producer.compression_type == "zstd"
    assert config.flows[0].worker.offset_flush_interval_ms == 10000


def test_example_of_a_worker_file_loads(tmp_path: Path) -> None:
    file = load_worker(write_example(2, tmp_path / "connect-distributed.properties"))
    assert file.spark == {"spark.master": "local[2]"}
    assert file.group.group_id == "connect-cluster"
    assert file.warnings == ()
