"""All targets by name."""

from __future__ import annotations

from tests.fuzz import (
    batch_targets,
    config_targets,
    convert_targets,
    link_targets,
    login_targets,
    rest_targets,
    secret_targets,
    topic_targets,
    view_targets,
    wire_targets,
)

MODULES = (
    batch_targets,
    wire_targets,
    config_targets,
    convert_targets,
    secret_targets,
    login_targets,
    rest_targets,
    link_targets,
    topic_targets,
    view_targets,
)
TARGETS = {target.name: target for module in MODULES for target in module.TARGETS}
