"""Python classes that connectors of the REST API may name."""

from __future__ import annotations

import pytest

from sparkmirror.config.checks.plugin_modules import NOT_LISTED, PLUGIN_MODULES
from sparkmirror.config.connector_spec import parse_connector
from sparkmirror.config.validation.connector_validation import error_summary, validate_connector
from sparkmirror.errors import ConfigErrors
from tests.config.security.test_allowed_access import SOURCE
from tests.config.worker_files import worker_with

KEYS = ("replication.policy.class", "topic.filter.class", "config.property.filter.class")


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    ("listed", "named", "is_allowed"),
    [
        ("", "antigravity:Filter", False),
        ("", " os:system", False),
        ("my_mirror", "my_mirror:Filter", True),
        ("my_mirror", "my_mirror.filters:Filter", True),
        ("my_mirror.filters", "my_mirror:Filter", False),
        ("my_mirror", "my_mirror2:Filter", False),
        ("a, my_mirror", "my_mirror:Filter", True),
    ],
)
def test_connector_names_only_modules_that_the_worker_lists(
    key: str, listed: str, named: str, is_allowed: bool
) -> None:
    worker = worker_with({PLUGIN_MODULES: listed})
    props = SOURCE | {key: named}
    summary = error_summary(validate_connector(None, props, worker))
    if is_allowed:
        parse_connector(props, worker)
        assert summary is None
        return
    with pytest.raises(ConfigErrors, match=PLUGIN_MODULES) as caught:
        parse_connector(props, worker)
    assert [(error.key, error.reason) for error in caught.value.errors] == [(key, NOT_LISTED)]
    assert summary is not None
    assert f"add {named.strip().partition(':')[0]} to {PLUGIN_MODULES}" in summary


def test_connector_cannot_list_modules_itself() -> None:
    props = SOURCE | {KEYS[0]: "os:system", PLUGIN_MODULES: "os"}
    with pytest.raises(ConfigErrors, match=PLUGIN_MODULES):
        parse_connector(props, worker_with({}))


def test_classes_of_mirror_maker_need_no_list() -> None:
    props = SOURCE | {KEYS[0]: "IdentityReplicationPolicy"}
    assert parse_connector(props, worker_with({})).config.policy_class.endswith("Policy")
