"""A container engine for tests: podman, whose images and containers are in a separate folder.

No registry is needed: the image's base is a Debian that mmdebstrap makes once and the cache keeps.
`tools/preflight` ensures that the programs are installed.
"""

from __future__ import annotations

import ast
import json
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sparkmirror.embedded.kafka_jars import locked
from sparkmirror.spark.machine import cache_folder
from tests.deploy.files import DEPLOY, ROOT, run

PROGRAMS = ("podman", "runc", "mmdebstrap")
BASE = "localhost/debian-python"
_BUILD_SECONDS = 900.0
_COMMAND_SECONDS = 120.0
# What pip needs to know of the registry. The rest, such as folders of this machine, stays here.
_OF_A_REGISTRY = ("index-url", "extra-index-url", "trusted-host", "proxy", "default-timeout")
# podman lowers its own limit to this before it starts anything.
_MOST_PROCESSES = 32768


class Engine:
    """Images and containers below `folder`; `close` removes all of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._settings = folder / "containers.conf"
        folder.mkdir(exist_ok=True)
        self._settings.write_text(_settings(folder), "ascii")
        storage = ("--root", folder / "storage", "--runroot", folder / "run")
        podman = shutil.which("podman") or "podman"
        self.program: tuple[str | Path, ...] = (podman, *storage, "--storage-driver", "overlay")
        self.environment = {"CONTAINERS_CONF": str(self._settings)}

    def call(self, *words: str | Path, within: float = _COMMAND_SECONDS) -> str:
        """What a command prints; it must succeed."""
        done = self.attempt(*words, within=within)
        assert done.returncode == 0, f"podman {words[0]}: {done.stderr[-3000:]}"
        return done.stdout

    def attempt(
        self, *words: str | Path, within: float = _COMMAND_SECONDS
    ) -> subprocess.CompletedProcess[str]:
        command = [str(word) for word in (*self.program, *words)]
        return run(*command, within=within, **self.environment)

    def build(self, name: str, secrets: Path) -> None:
        """deploy/Dockerfile, on `BASE`; `secrets` is a folder of files named as their ids."""
        given = [f"--secret=id={path.name},src={path}" for path in sorted(secrets.iterdir())]
        words = [f"--build-arg=BASE={BASE}", *given, *_pip_cache(), "--tag", name]
        file = ("--file", DEPLOY / "Dockerfile", ROOT)
        self.call("build", "--isolation=chroot", *words, *file, within=_BUILD_SECONDS)

    def inspect(self, image: str) -> dict[str, Any]:
        (found,) = json.loads(self.call("image", "inspect", image))
        return dict(found)

    def python(self, image: str, code: str) -> str:
        """What the image's own Python prints."""
        return self.call("run", "--rm", "--entrypoint", "python", image, "-c", code)

    @property
    def layers(self) -> list[Path]:
        """The files of each layer, those of the first stage included."""
        return sorted((self.folder / "storage" / "overlay").glob("*/diff"))

    def close(self) -> None:
        self.call("rm", "--all", "--force", "--time", "0")
        self.call("pod", "rm", "--all", "--force")
        self.call("rmi", "--all", "--force")
        # The storage is mounted on itself as long as it is in use.
        run("umount", str(self.folder / "storage" / "overlay"))
        shutil.rmtree(self.folder)


@contextmanager
def start_engine() -> Iterator[Engine]:
    """One at a time on a machine; what a killed run left is removed first."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    assert not missing, f"not installed: {', '.join(missing)}; `tools/preflight python3 containers`"
    home = cache_folder() / "image"
    with locked(home / "lock"):
        folder = home / "engine"
        if folder.exists():
            Engine(folder).close()
        engine = Engine(folder)
        try:
            engine.call("import", _base(home), BASE)
            yield engine
        finally:
            engine.close()


def _base(home: Path) -> Path:
    """A Debian with Python, as small as mmdebstrap makes it."""
    path = home / "debian-python.tar"
    if not path.exists():
        part = path.with_suffix(".part.tar")
        # Both are this machine's, and no part of a base.
        clean = 'rm -f "$1/etc/resolv.conf" "$1/etc/hostname"'
        made = run(
            *("mmdebstrap", "--quiet", "--variant=minbase", "--include=python3,ca-certificates"),
            *(f"--customize-hook={clean}", "bookworm", str(part)),
            within=_BUILD_SECONDS,
        )
        assert made.returncode == 0, f"mmdebstrap: {made.stderr[-3000:]}"
        part.rename(path)
    return path


def _settings(folder: Path) -> str:
    """Containers share this machine's network, and have limits that any process may set."""
    files, processes = (
        min(resource.getrlimit(limit)[1], most)
        for limit, most in (
            (resource.RLIMIT_NOFILE, 65536),
            (resource.RLIMIT_NPROC, _MOST_PROCESSES),
        )
    )
    # crun 1.8 rejects machines that have both kinds of cgroups.
    return f"""\
[containers]
netns = "host"
default_ulimits = ["nofile={files}:{files}", "nproc={processes}:{processes}"]
log_driver = "k8s-file"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
lock_type = "file"
tmp_dir = "{folder}/tmp"
"""


def write_secrets(folder: Path, mark: str) -> Path:
    """The registry that pip uses here, and its CA, as files for a build; `mark` is in both."""
    found = _pip_settings()
    lines = [f"{key} = {found[key]}\n" for key in _OF_A_REGISTRY if key in found]
    (folder / "pip.conf").write_text(f"# {mark}\n[global]\n" + "".join(lines), "utf-8")
    if "cert" in found:
        (folder / "ca.pem").write_text(f"{mark}\n" + Path(found["cert"]).read_text("utf-8"))
    return folder


def _pip_settings() -> dict[str, str]:
    """Those of files first, so that those of variables replace them."""
    listed = run(sys.executable, "-m", "pip", "config", "list").stdout
    lines = sorted(listed.splitlines(), key=lambda line: line.startswith(":env:"))
    found = (re.fullmatch(r"[^=]+\.([a-z-]+)=(['\"].*)", line) for line in lines)
    values = {each[1]: str(ast.literal_eval(each[2])) for each in found if each}
    return {key: value.replace("\n", "\n  ") for key, value in values.items()}


def _pip_cache() -> Sequence[str]:
    """pip's own folder: pyspark need not be built again."""
    found = run(sys.executable, "-m", "pip", "cache", "dir")
    folder = found.stdout.strip()
    is_usable = found.returncode == 0 and os.access(folder, os.W_OK)
    return [f"--volume={folder}:/root/.cache/pip"] if is_usable else []
