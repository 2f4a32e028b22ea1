"""The description of the API fits the table of routes and the responses."""

from __future__ import annotations

from pathlib import Path

import httpx

from sparkmirror.rest.openapi import describe
from sparkmirror.rest.request import RestOptions
from sparkmirror.rest.routes import ROUTES
from sparkmirror.rest.security.users import Users
from tests.rest.conftest import Serve
from tests.rest.fake_herder import FakeHerder
from tests.rest.requests import request


def test_description_has_every_route() -> None:
    paths = describe(RestOptions())["paths"]
    described = {(method.upper(), path) for path, item in paths.items() for method in item}
    assert described == {(route.method, route.path) for route in ROUTES}


def test_description_leaves_out_what_is_not_served() -> None:
    assert not [path for path in describe(RestOptions(admin=False))["paths"] if "admin" in path]
    assert list(describe(RestOptions(main=False))["paths"]) == [
        "/admin/loggers",
        "/admin/loggers/{logger}",
    ]


def test_all_references_have_a_target() -> None:
    description = describe(RestOptions())
    schemas = description["components"]["schemas"]
    for name in _references(description):
        assert name.rpartition("/")[2] in schemas


def _references(value: object) -> list[str]:
    if isinstance(value, dict):
        here = [str(value["$ref"])] if "$ref" in value else []
        return here + [ref for inner in value.values() for ref in _references(inner)]
    if isinstance(value, list):
        return [ref for inner in value for ref in _references(inner)]
    return []


def test_operation_ids_are_unique() -> None:
    paths = describe(RestOptions())["paths"]
    ids = [operation["operationId"] for item in paths.values() for operation in item.values()]
    assert len(ids) == len(set(ids))


def test_description_is_served(client: httpx.Client) -> None:
    response = client.get("/openapi.json")
    assert response.headers["content-type"] == "application/json"
    assert response.json()["openapi"] == "3.1.0"


def test_description_is_not_a_connector_or_a_method(serve: Serve, herder: FakeHerder) -> None:
    assert request(serve(herder), "POST", "/openapi.json", {}).status_code == 404


def test_description_says_that_a_login_is_needed(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text("a: b\n")
    assert "security" not in describe(RestOptions())
    described = describe(RestOptions(users=Users(file)))
    (needed,) = described["security"]
    assert list(needed) == list(described["components"]["securitySchemes"])
