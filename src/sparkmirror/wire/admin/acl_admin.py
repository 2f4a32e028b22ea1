"""Access rules of topics, through kafka-python: described and created, each with its own outcome.

Runs on: worker. kafka-python's own methods do not show which rule failed, and fail at codes that
they do not know; its requests have neither problem.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafka.protocol.admin import CreateAclsRequest, DescribeAclsRequest

from sparkmirror.errors import BrokerError
from sparkmirror.mirror.admin_types import AclRule
from sparkmirror.mirror.permissions import Operation, cluster_permission
from sparkmirror.wire.admin.admin_client import AdminClient, in_parts
from sparkmirror.wire.protocol.error_codes import SECURITY_DISABLED

TOPIC = 2
ANY = 1


class AclAdmin(AdminClient):
    """Admin requests about access rules."""

    def describe_topic_acls(
        self, operation: Operation = Operation.DESCRIBE
    ) -> list[AclRule] | None:
        """All rules about topics, with any kind of pattern; None: there is no authorizer.

        `operation` is the permission on the cluster that an error names: creating rules needs
        ALTER, which includes DESCRIBE.

        Raises:
            BrokerError: the cluster does not show its rules.
        """
        request = DescribeAclsRequest(
            resource_type_filter=TOPIC,
            resource_name_filter=None,
            pattern_type_filter=ANY,
            principal_filter=None,
            host_filter=None,
            operation=ANY,
            permission_type=ANY,
            # Version 0 has no pattern types (KIP-290), and would hide prefixed rules.
            min_version=1,
        )
        response = self._send("describe ACLs", request)
        if response.error_code == SECURITY_DISABLED:
            return None
        if response.error_code:
            raise self._error(
                "describe ACLs",
                response.error_code,
                cluster_permission(operation),
                detail=response.error_message,
            )
        return [rule for resource in response.resources for rule in _rules(resource)]

    def create_acls(self, rules: Iterable[AclRule]) -> dict[AclRule, BrokerError | None]:
        """Create the rules; each one's error. Creating one that is there is no error."""
        outcome: dict[AclRule, BrokerError | None] = {}
        for part in in_parts(list(rules)):
            creations = [CreateAclsRequest.AclCreation(*rule) for rule in part]
            request = CreateAclsRequest(creations=creations, min_version=1)
            results = self._send("create ACLs", request).results
            for rule, row in zip(part, results, strict=True):
                outcome[rule] = self._creation(rule, row)
        return outcome

    def _creation(self, rule: AclRule, row: Any) -> BrokerError | None:
        if not row.error_code:
            return None
        what = f"create an ACL of '{rule.principal}' for '{rule.resource_name}'"
        needed = cluster_permission(Operation.ALTER)
        return self._error(what, row.error_code, needed, detail=row.error_message)


def _rules(resource: Any) -> list[AclRule]:
    return [
        AclRule(
            resource.resource_type,
            resource.resource_name,
            resource.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for acl in resource.acls
    ]
