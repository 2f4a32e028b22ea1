"""The settings of signatures between workers."""

from __future__ import annotations

import pytest

from sparkmirror.config.worker.inter_worker import InterWorkerConfig
from sparkmirror.errors import ConfigErrors
from tests.config.worker_files import worker_with


def test_defaults_are_those_of_connect() -> None:
    config = worker_with({}).inter_worker
    assert config == InterWorkerConfig("HmacSHA256", None, 3600000, "HmacSHA256", ("HmacSHA256",))
    assert config.key_bytes == 32


def test_settings_are_read() -> None:
    file = worker_with(
        {
            "inter.worker.key.generation.algorithm": "HmacSHA384",
            "inter.worker.key.size": "256",
            "inter.worker.key.ttl.ms": "0",
            "inter.worker.signature.algorithm": "HmacSHA512",
            "inter.worker.verification.algorithms": "HmacSHA256, HmacSHA512",
        }
    )
    wanted = InterWorkerConfig("HmacSHA384", 256, 0, "HmacSHA512", ("HmacSHA256", "HmacSHA512"))
    assert file.inter_worker == wanted
    assert file.warnings == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("inter.worker.key.generation.algorithm", "HmacNone"),
        ("inter.worker.key.size", "39"),
        ("inter.worker.key.ttl.ms", "-1"),
        ("inter.worker.signature.algorithm", "HmacSHA512"),
        ("inter.worker.verification.algorithms", "HmacMD5"),
        ("inter.worker.verification.algorithms", ""),
    ],
)
def test_bad_settings_are_rejected_by_name(key: str, value: str) -> None:
    with pytest.raises(ConfigErrors, match=key):
        worker_with({key: value})
