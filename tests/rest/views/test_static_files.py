"""The page's files: hashed names, compression, caching, and nothing outside of the folder."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from sparkmirror.rest.views.static_files import StaticFiles
from tests.rest.conftest import Serve
from tests.rest.fake_herder import FakeHerder

SCRIPT = "export const x = 1;\n" * 100


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ui = tmp_path / "ui"
    (ui / "assets" / "js").mkdir(parents=True)
    (ui / "index.html").write_text('<script type="module" src="assets/js/app.js"></script>')
    (ui / "assets" / "js" / "app.js").write_text(SCRIPT)
    (ui / "assets" / "font.woff2").write_bytes(bytes(range(256)) * 10)
    (ui / "assets" / "notes.py").write_text("not for browsers")
    (tmp_path / "secret.txt").write_text("secret")
    return ui


@pytest.fixture
def client(serve: Serve, herder: FakeHerder, folder: Path) -> Iterator[httpx.Client]:
    url = serve(herder, files=StaticFiles(folder))
    with httpx.Client(base_url=url, timeout=20, trust_env=False, verify=False) as made:
        yield made


def hashed(client: httpx.Client) -> str:
    return client.get("/ui/").text.split('src="')[1].split('"')[0]


def test_the_page_is_asked_for_again_and_its_files_are_kept(client: httpx.Client) -> None:
    page = client.get("/ui/")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-cache"
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert page.headers["x-content-type-options"] == "nosniff"
    again = client.get("/ui/", headers={"if-none-match": page.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    script = client.get(f"/ui/{hashed(client)}")
    assert script.text == SCRIPT
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    assert "immutable" in script.headers["cache-control"]
    plain = client.get("/ui/assets/js/app.js")
    assert plain.text == SCRIPT
    assert plain.headers["cache-control"] == "no-cache"


def test_the_folder_has_another_name_when_a_file_has_changed(
    client: httpx.Client, folder: Path
) -> None:
    before = hashed(client)
    assert before.startswith("assets-")
    (folder / "assets" / "js" / "app.js").write_text("other")
    files = StaticFiles(folder)
    assert before.encode() not in files.respond(("",), {}).content


def test_text_is_compressed_for_those_who_can_read_that(client: httpx.Client) -> None:
    path = "/ui/assets/js/app.js"
    with client.stream("GET", path, headers={"accept-encoding": "gzip"}) as found:
        raw = b"".join(found.iter_raw())
        assert found.headers["content-encoding"] == "gzip"
    assert gzip.decompress(raw).decode() == SCRIPT
    plain = client.get(path, headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    font = client.get("/ui/assets/font.woff2", headers={"accept-encoding": "gzip"})
    assert "content-encoding" not in font.headers


def test_the_page_is_a_folder(client: httpx.Client) -> None:
    found = client.get("/ui")
    assert found.status_code == 307
    assert client.get(found.headers["location"]).status_code == 200
    assert found.headers["location"] == "ui/"


def test_head_has_the_same_headers_and_no_body(client: httpx.Client) -> None:
    found = client.head("/ui/")
    assert (found.status_code, found.content) == (200, b"")
    assert found.headers["content-type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize(
    "path",
    [
        "/ui/nothing.js",
        "/ui/assets/notes.py",
        "/ui/../secret.txt",
        "/ui/%2e%2e/secret.txt",
        "/ui/assets/..%2f..%2fsecret.txt",
        "/ui/assets-0123456789ab/js/app.js",
        "/ui//etc/passwd",
    ],
)
def test_nothing_else_is_served(client: httpx.Client, path: str) -> None:
    found = client.get(path)
    assert found.status_code in (400, 404)
    assert "secret" not in found.text.replace("secret.txt", "")


def test_other_methods_are_refused(client: httpx.Client) -> None:
    assert client.post("/ui/").status_code == 405
    assert client.delete("/ui/assets/js/app.js").status_code == 405


def test_an_installation_without_the_page_says_so(tmp_path: Path) -> None:
    found = StaticFiles(tmp_path).respond(("",), {})
    assert found.status == 404
    assert b"not part of this installation" in found.content
