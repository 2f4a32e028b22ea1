"""The Dockerfile: what gets into the image, and what stays out. test_container builds it."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import sparkmirror
from tests.deploy.files import DEPLOY, IMAGE, ROOT, run


def test_image_is_made_of_what_is_there() -> None:
    lines = (DEPLOY / "Dockerfile").read_text("ascii").splitlines()
    copied = [
        line.split()[1:-1] for line in lines if line.startswith("COPY") and "--from" not in line
    ]
    assert all((ROOT / path).exists() for paths in copied for path in paths)
    installing = [line for line in lines if re.search(r"bin/pip (--python \S+ )?install", line)]
    assert len(installing) == 3
    assert all("--require-hashes" in line or "--no-index" in line for line in installing)
    users = [line for line in lines if line.startswith("USER")]
    assert users == ["USER 10001"]
    assert 'ENTRYPOINT ["tini", "--", "sparkmirror"]' in lines
    # A replacement for an image of Kafka Connect gets variables, and no command.
    assert lines[-1] == 'CMD ["worker"]'


def test_only_the_first_stage_installs_packages() -> None:
    build, final = (DEPLOY / "Dockerfile").read_text("ascii").split("\nFROM ")[-2:]
    assert "AS build" in build
    assert "python3 -m venv --without-pip /opt/sparkmirror" in build
    assert " install" not in final.replace("apt-get install", "")
    copied = [line for line in final.splitlines() if line.startswith("COPY")]
    assert copied == ["COPY --from=build /opt/sparkmirror /opt/sparkmirror"]


def test_label_is_of_this_version() -> None:
    text = (DEPLOY / "Dockerfile").read_text("ascii")
    found = re.findall(r"image\.version=(\S+)|(?<=-t )(sparkmirror:\S+)", text)
    assert {"".join(each) for each in found} == {sparkmirror.__version__, IMAGE}


def needed(part: str) -> str:
    got = run(sys.executable, str(ROOT / "tools" / "needed_requirements.py"), part)
    assert (got.returncode, got.stderr) == (0, "")
    return got.stdout


def names_of(requirements: str) -> set[str]:
    return {canonicalize_name(name) for name in re.findall(r"(?m)^([\w.-]+)==", requirements)}


def wanted_by(*names: str) -> set[str]:
    """The packages that `names` need here, by what they say themselves."""
    found, new = set[str](), {canonicalize_name(name) for name in names}
    while new:
        found |= new
        asked = (Requirement(text) for name in new for text in metadata.requires(name) or ())
        here = (each for each in asked if not each.marker or each.marker.evaluate({"extra": ""}))
        new = {canonicalize_name(each.name) for each in here} - found
    return found


def test_image_gets_what_the_program_needs_and_nothing_else() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["aws"]]
    direct = [Requirement(text).name for text in wanted]
    lines = needed("run")
    others = {"colorama", "tzdata"}  # of other systems
    assert names_of(lines) - others == wanted_by(*direct)
    assert not names_of(lines) & {"pytest", "mypy", "ruff", "hypothesis", "pip-audit", "hatchling"}
    whole = (ROOT / "requirements.txt").read_text("ascii")
    assert set(lines.splitlines()) <= set(whole.splitlines())
    assert lines.count("--hash=") >= lines.count("==")


def test_package_is_built_by_what_it_says() -> None:
    assert names_of(needed("build")) == wanted_by("hatchling", "pip")
