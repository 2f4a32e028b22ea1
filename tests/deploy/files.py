"""What the tests of deploy/ share."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import yaml

import sparkmirror

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
IMAGE = f"sparkmirror:{sparkmirror.__version__}"

Json = dict[str, Any]


def load_documents(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text("ascii")))


def run(*words: str, within: float = 60.0, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        capture_output=True,
        text=True,
        timeout=within,
        check=False,
        env=os.environ | environment,
    )
