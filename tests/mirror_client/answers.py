"""Runs MirrorClientAnswers.java, which asks Kafka's own client library about a mirror's target."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sparkmirror.embedded.mirror_maker import run_java_tool

PROGRAM = Path(__file__).with_name("MirrorClientAnswers.java")
DEFAULT_POLICY = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
_SECONDS = 90.0


def ask_mirror_client(
    bootstrap: str,
    aliases: Iterable[str],
    *,
    policy: str = DEFAULT_POLICY,
    source: str = "",
    groups: Iterable[str] = (),
) -> dict[str, Any]:
    """What MirrorClient and RemoteClusterUtils answer; `groups` are translated from `source`."""
    about_groups = [source, ",".join(groups)] if source else []
    arguments = [bootstrap, policy, ",".join(aliases), *about_groups]
    # Java compiles and runs a file of source when it is named in place of a class.
    done = run_java_tool(str(PROGRAM), arguments, timeout_seconds=_SECONDS)
    assert done.returncode == 0, f"{PROGRAM.name}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    answers: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answers
