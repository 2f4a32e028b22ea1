"""Copies the page's libraries and fonts from npm packages into src/sparkmirror/ui/assets.

    python tools/vendored_ui.py          write them
    python tools/vendored_ui.py --check  compare what is there with the packages (`make check`)

The packages are those of PACKAGES, in exactly these versions: npm's own SHA-512 of each is below.
A file is copied byte for byte, except that imports of other packages become imports of the files
beside it (browsers do not resolve `from "preact"`) and the line with a source map is left out.
A registry that does not respond is only reported by --check: no change of the code could fix it.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

ASSETS = Path(__file__).parent.parent / "src" / "sparkmirror" / "ui" / "assets"
REGISTRY = os.environ.get("NPM_REGISTRY", "https://registry.npmjs.org").rstrip("/")
IMPORTS = {
    '"preact"': '"./preact.js"',
    '"preact/hooks"': '"./hooks.js"',
    '"@preact/signals-core"': '"./signals-core.js"',
}
SOURCE_MAP = re.compile(rb"\n?//# sourceMappingURL=\S+\s*$")


@dataclass(frozen=True)
class Package:
    """One npm package: which of its files go where."""

    name: str
    version: str
    sha512: str
    files: Mapping[str, str]

    @property
    def url(self) -> str:
        """Where a registry has its archive."""
        return f"{REGISTRY}/{self.name}/-/{self.name.rpartition('/')[2]}-{self.version}.tgz"


PACKAGES = (
    Package(
        "preact",
        "11.2.0",
        "/HfHI/7N84e6GrWBJ3J280z3mLaRJiDcSvj/A+y/4AbLnND/1UlGHe1sR6oYuTGwId0nP7dqDU9OnLxMPZ7xBg==",
        {
            "dist/preact.mjs": "vendor/preact.js",
            "hooks/dist/hooks.mjs": "vendor/hooks.js",
            "LICENSE": "vendor/preact.LICENSE.txt",
        },
    ),
    Package(
        "htm",
        "3.1.1",
        "983Vyg8NwUE7JkZ6NmOqpCZ+sh1bKv2iYTlUkzlWmA5JD2acKoxd4KVxbMmxX/85mtfdnDmTFoNKcg5DGAvxNQ==",
        {
            "dist/htm.mjs": "vendor/htm.js",
            "LICENSE": "vendor/htm.LICENSE.txt",
        },
    ),
    Package(
        "@preact/signals",
        "2.11.4",
        "Rb+5RPo9gWSaHtzJeauhHxiC8KP/IF2DEPkHPEOGOnuy2wnJzRqyeLRankUCYd6ADqtxS6GnWGv6Ie343d8aYw==",
        {
            "dist/signals.module.js": "vendor/signals.js",
            "LICENSE": "vendor/signals.LICENSE.txt",
        },
    ),
    Package(
        "@preact/signals-core",
        "1.14.5",
        "vcRv7Ityz5JVmeiVqIluLFzT/PDS/AlhHUpw3/aUWqcVUs6bDGIPXE/6RSC4evBNWYvnniozg5Syfj33al3gkg==",
        {
            "dist/signals-core.module.js": "vendor/signals-core.js",
        },
    ),
    Package(
        "uplot",
        "1.6.32",
        "KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==",
        {
            "dist/uPlot.iife.min.js": "vendor/uplot.js",
            "dist/uPlot.min.css": "vendor/uplot.css",
            "LICENSE": "vendor/uplot.LICENSE.txt",
        },
    ),
    Package(
        "@fontsource-variable/inter",
        "5.3.0",
        "OupL48va4JNofb97w6NYeF9S7W/kHNKM0Er8Dem5nqi4jeOLrVJDoE8tZEpnMJmtkvNbB1EIPPwHcdkF6b1oUA==",
        {
            "files/inter-latin-wght-normal.woff2": "fonts/inter.woff2",
            "LICENSE": "fonts/inter.LICENSE.txt",
        },
    ),
    Package(
        "@fontsource-variable/jetbrains-mono",
        "5.3.0",
        "F32xpS2NsGYoQi2ADSkKTgpJj7ozajsGgDJ8woTnqjmIB+dxDIqImjl4pXZVEExu8UFZ2ndhmX18EBS/hdz3Lw==",
        {
            "files/jetbrains-mono-latin-wght-normal.woff2": "fonts/jetbrains-mono.woff2",
            "LICENSE": "fonts/jetbrains-mono.LICENSE.txt",
        },
    ),
)


def main(words: list[str]) -> int:
    """Write the files or, with --check, compare them."""
    try:
        wanted = {path: data for package in PACKAGES for path, data in _files_of(package).items()}
    except httpx.HTTPError as error:
        sys.stderr.write(f"vendored_ui: not checked, {REGISTRY} does not respond: {error}\n")
        return 0 if words == ["--check"] else 1
    if words == ["--check"]:
        return _compare(wanted)
    for path, data in wanted.items():
        (ASSETS / path).parent.mkdir(parents=True, exist_ok=True)
        (ASSETS / path).write_bytes(data)
    return 0


def _files_of(package: Package) -> dict[str, bytes]:
    answer = httpx.get(package.url, follow_redirects=True, timeout=30).raise_for_status()
    digest = base64.b64encode(hashlib.sha512(answer.content).digest()).decode()
    if digest != package.sha512:
        sys.exit(f"vendored_ui: {package.url} has the SHA-512 {digest}, not the expected one")
    with tarfile.open(fileobj=io.BytesIO(answer.content)) as archive:
        return {
            path: adapted(path, _member(archive, f"package/{inside}"))
            for inside, path in package.files.items()
        }


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    member = archive.extractfile(name)
    if member is None:
        sys.exit(f"vendored_ui: {name} is not a file")
    return member.read()


def adapted(path: str, data: bytes) -> bytes:
    """What is stored of a package's file."""
    if not path.endswith(".js"):
        return data
    for name, file in IMPORTS.items():
        data = data.replace(f"from{name}".encode(), f"from{file}".encode())
    return SOURCE_MAP.sub(b"\n", data)


def _compare(wanted: Mapping[str, bytes]) -> int:
    there = {
        str(path.relative_to(ASSETS))
        for folder in ("vendor", "fonts")
        for path in (ASSETS / folder).iterdir()
    }
    wrong = sorted(
        path for path, data in wanted.items() if path in there and _differs(ASSETS / path, data)
    )
    for path in wrong:
        sys.stderr.write(f"vendored_ui: {path} is not what its npm package contains\n")
    for path in sorted(there ^ set(wanted)):
        sys.stderr.write(f"vendored_ui: {path} is missing, or comes from no package\n")
    return 1 if wrong or there != set(wanted) else 0


def _differs(path: Path, data: bytes) -> bool:
    return path.read_bytes() != data


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
