"""Connects to every cluster that a file names, and checks our permissions there.

Runs on: any machine; changes nothing on any cluster.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.connector_spec import AnySpec
from sparkmirror.config.mirror_configs import CheckpointConfig, SourceConfig
from sparkmirror.connect.checkpoint.group_discovery import GroupDiscovery
from sparkmirror.connect.denied_topics import plain_names
from sparkmirror.connect.start_checks import (
    WARNING,
    Facts,
    planned_topics,
    replica_problems,
)
from sparkmirror.errors import KafkaError
from sparkmirror.mirror.filters import make_topic_filter
from sparkmirror.mirror.permissions import (
    EITHER,
    EXISTS,
    NEW_BROKERS,
    REMOTE_EXISTS,
    Permission,
    ResourceKind,
)
from sparkmirror.mirror.policy import flow_policy
from sparkmirror.mirror.topics import should_replicate_topic
from sparkmirror.tools.check.check_report import (
    NO_CONNECTION,
    CheckResult,
    PermissionReport,
    Report,
)
from sparkmirror.tools.check.checked_file import CheckedFile
from sparkmirror.tools.check.cluster_logins import (
    ClusterLogin,
    Logins,
    clients_of,
    cluster_key,
    log_in,
)
from sparkmirror.tools.check.required_permissions import (
    RequiredPermission,
    wanted_by_checkpoint,
    wanted_by_heartbeat,
    wanted_by_herder,
    wanted_by_source,
    wanted_by_worker,
)
from sparkmirror.wire.access import grant_command
from sparkmirror.wire.admin.permission_probe import NotReportedError

# From this release on, writers need no permission on the cluster.
CONTENT_VERSION = (2, 8)
# Of the commands that grant one permission on several resources.
MOST_GRANTS = 3


def check_file(file: CheckedFile, name: str) -> Report:
    """Check the clusters of one file."""
    clients = clients_of(file)
    with ThreadPoolExecutor(max(1, len(clients))) as pool:
        logins = dict(zip(clients, pool.map(log_in, clients.values()), strict=True))
    try:
        permissions = [
            permission
            for flow, wanted in _all_wanted(file, logins)
            for permission in _permission_reports(flow, wanted, logins)
        ]
    finally:
        for login in logins.values():
            if login.probe is not None:
                login.probe.close()
    clusters = tuple(login.report for login in logins.values())
    found = _replica_problems(file, logins)
    hints = [text.removeprefix(WARNING) for text in found if text.startswith(WARNING)]
    problems = (*(text for text in found if not text.startswith(WARNING)), *file.problems)
    warnings = (*file.warnings, *hints)
    return Report(name, file.kind, clusters, tuple(permissions), warnings, problems)


def _replica_problems(file: CheckedFile, logins: Logins) -> list[str]:
    """Topics that would have more replicas than the cluster has brokers, each once."""

    def facts_of(client: ClientConfig) -> Facts | None:
        login = logins.get(cluster_key(client))
        is_known = login is not None and login.brokers > 0
        return Facts(login.brokers, login.topics) if login is not None and is_known else None

    found: dict[tuple[str, str], str] = {}  # by target and topic
    for each in file.connectors:
        planned = planned_topics(each.config, each.worker)
        if file.worker is not None:  # no worker starts without its offsets topic
            planned = [
                topic._replace(is_strict=True, without="") if topic.without else topic
                for topic in planned
            ]
        for (_, topic), text in replica_problems(planned, facts_of):
            # One connector may not need a topic that another one needs.
            where = each.config.target_alias, topic
            if where not in found or found[where].startswith(WARNING):
                found[where] = text
    return list(dict.fromkeys(found.values()))


# -- permissions -----------------------------------------------------------------------------------


def _all_wanted(
    file: CheckedFile, logins: Logins
) -> Iterable[tuple[str, list[RequiredPermission]]]:
    if file.worker is not None:
        yield "worker", wanted_by_worker(file.worker)
    for flow, worker in file.groups:
        yield str(flow), wanted_by_herder(worker)
    for connector in file.connectors:
        yield str(connector.flow), _wanted(connector, logins)


def _wanted(connector: AnySpec, logins: Logins) -> list[RequiredPermission]:
    config, worker = connector.config, connector.worker
    if isinstance(config, SourceConfig):
        return wanted_by_source(config, worker, _topics(config, logins)) if config.enabled else []
    if not isinstance(config, CheckpointConfig):
        return wanted_by_heartbeat(config, worker)
    if not config.enabled:
        return []
    login = logins[cluster_key(config.source_client)]
    accepts = make_topic_filter(config).should_replicate_topic
    topics = sorted(filter(accepts, {*login.topics, *plain_names(config.topics)}))
    return wanted_by_checkpoint(config, worker, _groups(connector, config, login), topics)


def _topics(config: SourceConfig, logins: Logins) -> list[str]:
    """Topics to copy: those that the cluster lists, and those that the file names."""
    topic_filter, policy = make_topic_filter(config), flow_policy(config)
    shown = logins[cluster_key(config.source_client)].topics
    return sorted(
        topic
        for topic in {*shown, *plain_names(config.topics)}
        if should_replicate_topic(
            topic,
            topic_filter,
            policy,
            heartbeats_replication_enabled=config.heartbeats_replication_enabled,
            source_alias=config.source_alias,
            target_alias=config.target_alias,
        )
    )


def _groups(connector: AnySpec, config: CheckpointConfig, login: ClusterLogin) -> list[str]:
    """Groups to follow: those that the cluster lists, and those that the file names."""
    followed = GroupDiscovery(connector.flow, config, make_topic_filter(config))
    if login.probe is not None:
        with suppress(KafkaError):  # the permission checks report it
            followed.refresh(login.probe)
    return sorted({*followed.names, *plain_names(config.groups)})


def _permission_reports(
    flow: str, rows: Sequence[RequiredPermission], logins: Logins
) -> Iterable[PermissionReport]:
    wanted = [row for row in rows if not _is_for_old_brokers(row, logins)]
    by_login: dict[Hashable, list[Permission]] = {}
    for row in wanted:
        by_login.setdefault(cluster_key(row.client), []).extend(row.permissions)
    results = {key: _ask(logins[key], permissions) for key, permissions in by_login.items()}
    remotes = _remotes_there(wanted, logins)
    found = [
        _judge(
            flow, row, results[cluster_key(row.client)], logins[cluster_key(row.client)], remotes
        )
        for row in wanted
    ]
    return _one_of_both(found)


def _one_of_both(reports: Sequence[PermissionReport]) -> list[PermissionReport]:
    """Require one of two permissions, each of which is optional if the other is granted."""
    lacking = [
        row for row in reports if row.need.unless in EITHER and row.state is CheckResult.WITHOUT
    ]
    if len({row.need.unless for row in lacking}) < len(EITHER):
        return list(reports)
    return [
        replace(row, state=CheckResult.NO, detail="one of the two is needed")
        if row in lacking
        else row
        for row in reports
    ]


def _is_for_old_brokers(row: RequiredPermission, logins: Logins) -> bool:
    probe = logins[cluster_key(row.client)].probe
    is_new = probe is not None and probe.release >= CONTENT_VERSION
    return row.need.unless == NEW_BROKERS and is_new


def _ask(
    login: ClusterLogin, permissions: Sequence[Permission]
) -> Mapping[Permission, bool | KafkaError]:
    if login.probe is None:
        return dict.fromkeys(permissions, KafkaError(NO_CONNECTION))
    return login.probe.ask(permissions)


def _remotes_there(wanted: Sequence[RequiredPermission], logins: Logins) -> frozenset[str]:
    """Copied topics whose remote topic exists."""
    copied = next((row for row in wanted if row.need.place is ResourceKind.COPIED), None)
    remote = next((row for row in wanted if row.need.place is ResourceKind.REMOTE), None)
    if copied is None or remote is None:
        return frozenset()
    shown = logins[cluster_key(remote.client)].topics
    pairs = zip(copied.names, remote.names, strict=True)
    return frozenset(topic for topic, name in pairs if name in shown)


def _judge(
    flow: str,
    row: RequiredPermission,
    results: Mapping[Permission, bool | KafkaError],
    login: ClusterLogin,
    remotes: frozenset[str],
) -> PermissionReport:
    excused = {EXISTS: login.topics, REMOTE_EXISTS: remotes}.get(row.need.unless, frozenset())
    asked = tuple(permission for permission in row.permissions if permission.name not in excused)
    errors = [error for permission in asked if isinstance(error := results[permission], KafkaError)]
    denied = tuple(permission for permission in asked if results[permission] is False)
    strict = not row.need.is_optional or row.need.unless in (EXISTS, REMOTE_EXISTS)
    state = CheckResult.YES
    if denied:
        state = CheckResult.NO if strict else CheckResult.WITHOUT
    elif errors:
        state = CheckResult.UNKNOWN
    detail = str(errors[0]) if errors else ""
    if not asked:
        detail = f"not needed, {row.need.unless}"
    elif denied and not strict:
        detail = f"not needed if {row.need.unless}"
    principal = login.report.principal
    # Each names one resource: a rule for a prefix would also restrict topics that are open to
    # everyone while they have no ACL (allow.everyone.if.no.acl.found).
    grants = tuple(grant_command(row.client, permission) for permission in denied[:MOST_GRANTS])
    is_unreported = state is CheckResult.UNKNOWN and all(
        isinstance(each, NotReportedError) for each in errors
    )
    return PermissionReport(
        flow,
        row.client.alias,
        principal,
        row.need,
        state,
        tuple(row.permissions),
        denied,
        grants,
        detail,
        is_unreported,
    )
