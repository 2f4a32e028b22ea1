"""Copies the ACLs of topics to their remote topics.

Runs on: worker, on the connector's thread. mirror/acls decides which; nothing is ever deleted on
the target.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from sparkmirror.connect.warn_once import WarnOnce
from sparkmirror.errors import DeniedError, KafkaError, describe_error
from sparkmirror.events import EventKind, event
from sparkmirror.mirror.acls import (
    WILDCARD,
    AclBinding,
    AclOperation,
    AclPermission,
    AclPlan,
    PatternType,
    ResourceType,
    plan_acls,
)
from sparkmirror.mirror.permissions import (
    ALTER,
    DESCRIBE,
    Feature,
    Operation,
    ResourceKind,
    consequence_without,
)
from sparkmirror.mirror.policy import ReplicationPolicy
from sparkmirror.types import FlowName
from sparkmirror.wire.admin.admin import AclRule, Admin

log = logging.getLogger(__name__)

SWITCH_OFF = "set sync.topic.acls.enabled=false"


class AclSync:
    """The ACLs of one flow's topics; one round is `sync`."""

    def __init__(
        self,
        flow: FlowName,
        policy: ReplicationPolicy,
        should_replicate_topic: Callable[[str], bool],
        source: Admin,
        target: Admin,
    ) -> None:
        self._flow = flow
        self._policy = policy
        self._should_replicate_topic = should_replicate_topic
        self._source = source
        self._target = target
        self._complaints = WarnOnce(str(flow))
        self._has_logged_disabled = False

    def sync(self) -> None:
        """Create the ACLs that the source has and the target lacks.

        Raises:
            KafkaError: one of the clusters does not list its ACLs.
        """
        found = _describe(self._source, DESCRIBE)
        if found is None:
            self._log_disabled()
            return
        existing = _describe(self._target, ALTER)
        plan = plan_acls(
            found,
            self._should_replicate_topic,
            self._policy,
            self._flow.source,
            existing=existing or (),
        )
        if existing is None:
            self._complaints.report(self._no_place_for(plan))
        else:
            self._create(plan)

    def _create(self, plan: AclPlan) -> None:
        errors = {str(binding): self._about_wildcard(binding) for binding in plan.wildcards}
        outcomes = self._target.create_acls(_rule(binding) for binding in plan.create)
        for rule, error in outcomes.items():
            if error is None:
                shown, mark = _shown(_binding(rule)), event(EventKind.SYNCED, flow=self._flow)
                log.info("[%s] created an ACL: %s", self._flow, shown, extra=mark)
            else:
                errors[str(rule)] = describe_error(error, f"not created: {_shown(_binding(rule))}")
        self._complaints.report(errors)

    def _log_disabled(self) -> None:
        level = logging.DEBUG if self._has_logged_disabled else logging.INFO
        text = "[%s] no authorizer on '%s', so no ACLs to copy; consider disabling ACL sync: %s"
        log.log(level, text, self._flow, self._flow.source, SWITCH_OFF)
        self._has_logged_disabled = True

    def _no_place_for(self, plan: AclPlan) -> dict[str, str]:
        if not plan.create:
            return {}
        target = self._flow.target
        text = f"'{target}' has no authorizer: {len(plan.create)} ACLs are not copied; {SWITCH_OFF}"
        return {target: text}

    def _about_wildcard(self, binding: AclBinding) -> str:
        target = self._flow.target
        if binding.resource_name == WILDCARD:
            becomes = f"one for all topics of '{target}', whoever they belong to"
        else:
            becomes = f"one for '{binding.resource_name}' on '{target}', which no topic is called"
        return (
            f"the ACL of '{binding.principal}' for all topics of '{self._flow.source}' becomes "
            f"{becomes}; as in MirrorMaker 2"
        )


def missing_acls(
    policy: ReplicationPolicy,
    should_replicate_topic: Callable[[str], bool],
    source_alias: str,
    admins: tuple[Admin, Admin],
) -> dict[str, list[str]]:
    """What the target (the second admin) lacks, in words, by remote topic; nothing is changed.

    Empty where a cluster has no authorizer. Raises KafkaError.
    """
    source, target = admins
    found = _describe(source, DESCRIBE)
    existing = None if found is None else _describe(target, DESCRIBE)
    if found is None or existing is None:
        return {}
    plan = plan_acls(found, should_replicate_topic, policy, source_alias, existing=existing)
    missing: dict[str, list[str]] = {}
    for binding in plan.create:
        missing.setdefault(binding.resource_name, []).append(_shown(binding))
    return missing


def _describe(admin: Admin, operation: Operation) -> list[AclBinding] | None:
    try:
        rules = admin.describe_topic_acls(operation)
    except DeniedError as error:
        without = consequence_without(Feature.ACLS, ResourceKind.CLUSTER, operation)
        raise KafkaError(describe_error(error, without)) from error
    return None if rules is None else [_binding(rule) for rule in rules]


def _binding(rule: AclRule) -> AclBinding:
    return AclBinding(
        ResourceType(rule.resource_type),
        rule.resource_name,
        PatternType(rule.pattern_type),
        rule.principal,
        rule.host,
        AclOperation(rule.operation),
        AclPermission(rule.permission),
    )


def _rule(binding: AclBinding) -> AclRule:
    return AclRule(
        binding.resource_type,
        binding.resource_name,
        binding.pattern_type,
        binding.principal,
        binding.host,
        binding.operation,
        binding.permission,
    )


def _shown(binding: AclBinding) -> str:
    return (
        f"{binding.permission.name} {binding.operation.name} on '{binding.resource_name}' for "
        f"'{binding.principal}' from {binding.host}"
    )
