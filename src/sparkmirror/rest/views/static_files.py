"""Serves the page: `sparkmirror/ui/` at `/ui`, compressed, and cached by browsers for ever.

Runs on: worker. Read once: the files are part of the installation. Modules of the page refer to
each other by relative names, so one hash over all files is in the folder's name, not in theirs.
"""

from __future__ import annotations

import gzip
import hashlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Final

import sparkmirror

UI: Final = "ui"
INDEX: Final = "index.html"
FOLDER: Final = "assets"
TYPES: Final[Mapping[str, str]] = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".webmanifest": "application/manifest+json",
}
_PACKED: Final = (".woff2", ".png")
# Nothing from elsewhere, and no script or style in the text of the page.
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}
_FOR_EVER: Final = "public, max-age=31536000, immutable"
_ASK: Final = "no-cache"
_HASH_DIGITS: Final = 12
# Smaller files gain nothing.
_LEAST_BYTES: Final = 512


@dataclass(frozen=True, slots=True)
class StaticFile:
    """`packed`: the same with gzip; empty where that gains nothing."""

    content: bytes
    packed: bytes
    content_type: str
    etag: str


@dataclass(frozen=True, slots=True)
class StaticResponse:
    """What is sent."""

    status: int
    content: bytes = b""
    content_type: str = ""
    headers: Mapping[str, str] = field(default_factory=lambda: HEADERS)


class StaticFiles:
    """The files below `folder`; for any thread."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or Path(sparkmirror.__file__).parent / UI
        self._lock = threading.Lock()
        self._files: dict[str, StaticFile] | None = None
        self._hashed = ""

    def respond(self, segments: Sequence[str], headers: Mapping[str, str]) -> StaticResponse:
        """To GET or HEAD of `/ui/<segments>`; without segments the slash is missing."""
        if not segments:
            # Relative: it also fits behind a proxy that serves the worker below another path.
            return StaticResponse(
                HTTPStatus.TEMPORARY_REDIRECT, headers={**HEADERS, "Location": f"{UI}/"}
            )
        files = self._load()
        path, is_hashed = self._unhashed("/".join(segments) or INDEX)
        found = files.get(path)
        if found is None:
            return self._missing(files)
        caching = _FOR_EVER if is_hashed else _ASK
        answer = {
            **HEADERS,
            "Cache-Control": caching,
            "ETag": found.etag,
            "Vary": "Accept-Encoding",
        }
        if _matches(headers.get("if-none-match", ""), found.etag):
            return StaticResponse(HTTPStatus.NOT_MODIFIED, headers=answer)
        if found.packed and "gzip" in headers.get("accept-encoding", ""):
            answer["Content-Encoding"] = "gzip"
            return StaticResponse(HTTPStatus.OK, found.packed, found.content_type, answer)
        return StaticResponse(HTTPStatus.OK, found.content, found.content_type, answer)

    def _missing(self, files: Mapping[str, StaticFile]) -> StaticResponse:
        text = "no such file" if files else "the page is not part of this installation"
        return StaticResponse(HTTPStatus.NOT_FOUND, f"{text}\n".encode(), TYPES[".txt"])

    def _unhashed(self, path: str) -> tuple[str, bool]:
        """The file's name, and whether it was asked for by its hash."""
        folder, _, rest = path.partition("/")
        if rest and folder == self._hashed:
            return f"{FOLDER}/{rest}", True
        return path, False

    def _load(self) -> dict[str, StaticFile]:
        with self._lock:
            if self._files is None:
                self._files = self._read()
            return self._files

    def _read(self) -> dict[str, StaticFile]:
        if not (self._folder / INDEX).is_file():
            return {}
        contents = {
            path.relative_to(self._folder).as_posix(): path.read_bytes()
            for path in sorted(self._folder.rglob("*"))
            if path.is_file() and path.suffix in TYPES
        }
        digest = hashlib.sha256()
        for name, content in contents.items():
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
        self._hashed = f"{FOLDER}-{digest.hexdigest()[:_HASH_DIGITS]}"
        contents[INDEX] = contents[INDEX].replace(
            f'"{FOLDER}/'.encode(), f'"{self._hashed}/'.encode()
        )
        return {name: _file(name, content) for name, content in contents.items()}


def _file(name: str, content: bytes) -> StaticFile:
    suffix = Path(name).suffix
    packed = b""
    if len(content) >= _LEAST_BYTES and suffix not in _PACKED:
        # Without a time: the same file has the same bytes on every worker.
        packed = gzip.compress(content, mtime=0)
    etag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
    return StaticFile(content, packed if len(packed) < len(content) else b"", TYPES[suffix], etag)


def _matches(wanted: str, etag: str) -> bool:
    tags = [tag.strip().removeprefix("W/") for tag in wanted.split(",")]
    return wanted.strip() == "*" or etag in tags
