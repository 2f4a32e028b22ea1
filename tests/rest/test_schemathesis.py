"""The description of the API, exercised by schemathesis: responses are as described.

Not checked: that bad bodies give no status 500 and 405 an Allow header (Connect's are so), and that
good data is accepted and bad data rejected: types cannot show whether settings are good.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from sparkmirror.rest.connect_api import make_app
from sparkmirror.rest.openapi import describe
from sparkmirror.rest.request import RestOptions
from sparkmirror.rest.rest_server import RestServer
from tests.rest.fake_herder import FakeHerder
from tests.rest.requests import HEARTBEAT

_CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]


api = schemathesis.openapi.from_dict(describe(RestOptions()))


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    """A server with one connector."""
    herder = FakeHerder()
    herder.put_config("x", HEARTBEAT)
    with RestServer([("127.0.0.1", 0)]).start(make_app(herder)) as server:
        yield f"http://127.0.0.1:{server.ports[0]}"


@api.parametrize()
@settings(max_examples=10, derandomize=True, suppress_health_check=list(HealthCheck))
def test_responses_are_as_described(
    case: schemathesis.Case[Any], base_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "sparkmirror")
    case.call_and_validate(base_url=base_url, checks=_CHECKS)
    assert caplog.messages == []  # faults of ours are logged
