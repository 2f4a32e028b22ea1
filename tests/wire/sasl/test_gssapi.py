"""Kerberos with a real KDC: a keytab that came over the control link."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kerberos import REALM, Kdc

# The library reads its settings once: it gets a process of its own.
PROGRAM = """
import os, sys
from sparkmirror.wire import secret_files
from sparkmirror.wire.sasl.gssapi import GssapiLogin

secret_files.provide("/no/such/keytab", open(sys.argv[1], "rb").read())
options = {"principal": sys.argv[2], "keyTab": "/no/such/keytab"}
mechanism = GssapiLogin("kafka", options, keytab=True).begin("localhost").result(60)
print(len(mechanism.start()), flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    with Kdc(tmp_path_factory.mktemp("kdc")) as kdc:
        yield kdc


def test_a_keytab_from_the_worker_leaves_nothing_on_the_disk_even_after_kill_9(
    kdc: Kdc, tmp_path: Path
) -> None:
    alice, _ = kdc.add("alice"), kdc.add("kafka/localhost")
    environment = os.environ | {"KRB5_CONFIG": str(kdc.config), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(alice), f"alice@{REALM}"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == -9, done.stderr
    assert int(done.stdout) > 100
    assert list(tmp_path.iterdir()) == []
