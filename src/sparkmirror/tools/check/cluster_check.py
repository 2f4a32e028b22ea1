"""Connects to every cluster that a file names, and asks each what it lets us do.

Runs on: wherever `sparkmirror check` is called; changes nothing anywhere.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace

from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.mirror_configs import CheckpointConfig, SourceConfig
from sparkmirror.config.worker_config import WorkerConfig
from sparkmirror.connect.checkpoint.group_discovery import FollowedGroups
from sparkmirror.connect.denied_topics import plain_names
from sparkmirror.connect.start_checks import (
    WARNING,
    Facts,
    planned_topics,
    replica_problems,
)
from sparkmirror.errors import KafkaError, MirrorError, UnsupportedVersionError
from sparkmirror.mirror.filters import make_topic_filter
from sparkmirror.mirror.permissions import EITHER, EXISTS, NEW_BROKERS, REMOTE_EXISTS, Place, Right
from sparkmirror.mirror.policy import flow_policy
from sparkmirror.mirror.topics import should_replicate_topic
from sparkmirror.tools.check.check_report import (
    NO_CONNECTION,
    Check,
    ClusterReport,
    Report,
    RightReport,
    State,
)
from sparkmirror.tools.check.checked_file import CheckedConnector, CheckedFile
from sparkmirror.tools.check.required_permissions import (
    Wanted,
    wanted_by_checkpoint,
    wanted_by_group,
    wanted_by_heartbeat,
    wanted_by_source,
    wanted_by_worker,
)
from sparkmirror.wire.access import grant_command
from sparkmirror.wire.admin.permission_probe import NotToldError, RightsProbe
from sparkmirror.wire.client.reachability import (
    AdvertisedError,
    ask_for_brokers,
    connect_seconds,
    connect_to,
    describe_unreachable,
    find_unreachable,
)
from sparkmirror.wire.principal import principal_of
from sparkmirror.wire.protocol.api_versions import release_name
from sparkmirror.wire.security import Security
from sparkmirror.wire.tls.tls_probe import fetch_certificate

TIMEOUT_MS = 15_000
# Brokers from this release on do not ask writers for a right on the cluster.
CONTENT_VERSION = (2, 8)
EXPIRES_SOON_DAYS = 30
# Of commands that grant the same right on several resources.
MOST_GRANTS = 3


def check_file(file: CheckedFile, name: str) -> Report:
    """Everything that can be found out about the clusters of one file."""
    clients = _clients(file)
    with ThreadPoolExecutor(max(1, len(clients))) as pool:
        logins = dict(zip(clients, pool.map(_log_in, clients.values()), strict=True))
    try:
        rights = [
            right
            for flow, wanted in _all_wanted(file, logins)
            for right in _rights(flow, wanted, logins)
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
    return Report(name, file.kind, clusters, tuple(rights), warnings, problems)


def _replica_problems(file: CheckedFile, logins: Logins) -> list[str]:
    """Topics that would have more replicas than there are brokers, each once."""

    def facts_of(client: ClientConfig) -> Facts | None:
        login = logins.get(_key(client))
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
            # One connector may do without a topic that another one needs.
            where = each.config.target_alias, topic
            if where not in found or found[where].startswith(WARNING):
                found[where] = text
    return list(dict.fromkeys(found.values()))


# -- logins ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Login:
    """One login at one cluster; `topics` are those that it is shown."""

    report: ClusterReport
    probe: RightsProbe | None
    topics: frozenset[str] = frozenset()
    brokers: int = 0


Logins = Mapping[Hashable, Login]


def _key(client: ClientConfig) -> Hashable:
    """Clients that look the same to the brokers."""
    return client.bootstrap_servers, tuple(sorted(client.security.items(), key=lambda row: row[0]))


def _clients(file: CheckedFile) -> dict[Hashable, ClientConfig]:
    found: list[ClientConfig] = []
    for each in file.connectors:
        config = each.config
        if not getattr(config, "enabled", True):
            continue
        if isinstance(config, SourceConfig):
            found += [config.source_client, config.consumer.client]
            found += [config.offset_syncs_producer.client]
        if isinstance(config, CheckpointConfig):
            found += [config.source_client, config.checkpoints_reader, config.offset_syncs_reader]
        found += [config.target_client, config.producer.client]
        found += _own_clients(each.worker) if each.worker.offset_storage_topic else []
    found += [] if file.worker is None else _own_clients(file.worker)
    found += [worker.client for _, worker in file.groups]
    clients: dict[Hashable, ClientConfig] = {}
    for client in found:
        clients.setdefault(_key(client), client)
    return clients


def _own_clients(worker: WorkerConfig) -> list[ClientConfig]:
    return [worker.client, worker.producer.client]


def _log_in(client: ClientConfig) -> Login:
    checks: list[Check] = []
    probe = None
    topics: frozenset[str] = frozenset()
    brokers = 0
    try:
        if _reach(client, checks) and _check_tls(client, checks):
            probe = _authenticate(client, checks)
        if probe is not None:
            brokers, topics = _look_around(client, probe, checks)
    except MirrorError as error:
        checks.append(Check("connection", State.NO, str(error)))
    principal = principal_of(client)
    report = ClusterReport(client.alias, client.bootstrap_servers, principal, tuple(checks))
    return Login(report, probe, topics, brokers)


def _reach(client: ClientConfig, checks: list[Check]) -> bool:
    """Whether any of the addresses accepts connections; those that do not are named."""
    problems = [
        f"{server}: {problem}"
        for server in client.bootstrap_servers
        if (problem := connect_to(server, connect_seconds(client)))
    ]
    is_any = len(problems) < len(client.bootstrap_servers)
    if not is_any:
        problems.append(f"check {client.servers_key} and that the brokers are up")
    checks.append(Check("reachable", State.YES if is_any else State.NO, "; ".join(problems)))
    return is_any


def _check_tls(client: ClientConfig, checks: list[Check]) -> bool:
    if not Security.of(client).is_tls:
        checks.append(Check("TLS", State.WITHOUT, "security.protocol does not ask for it"))
        return True
    found = [_check_certificate(client, server) for server in client.bootstrap_servers]
    checks += found
    return any(check.state is State.YES for check in found)


def _check_certificate(client: ClientConfig, server: str) -> Check:
    what = f"TLS {server}"
    try:
        shown = fetch_certificate(client, server)
    except MirrorError as error:
        return Check(what, State.NO, str(error))
    name = "chain and name are right" if shown.is_name_checked else "chain is right, name unchecked"
    soon = " SOON" if shown.days_left < EXPIRES_SOON_DAYS else ""
    detail = (
        f"{shown.version}, {shown.suite}; {shown.subject}, issued by {shown.issuer}: {name}; "
        f"expires{soon} {shown.not_after:%Y-%m-%d} (in {shown.days_left} days)"
    )
    return Check(what, State.YES, detail)


def _authenticate(client: ClientConfig, checks: list[Check]) -> RightsProbe | None:
    began = time.monotonic()
    try:
        probe: RightsProbe | None = RightsProbe(client, TIMEOUT_MS)
        unreachable = None
    except AdvertisedError as error:  # which only those learn that have logged in
        probe, unreachable = None, Check("brokers", State.NO, str(error))
    except UnsupportedVersionError as error:
        checks.append(Check("version", State.NO, str(error)))
        return None
    except MirrorError as error:
        checks.append(Check("authenticated", State.NO, str(error)))
        return None
    security = Security.of(client)
    how = security.setting("sasl.mechanism") if security.is_sasl else security.protocol
    detail = f"{principal_of(client)} ({how}), {time.monotonic() - began:.1f} s"
    checks.append(Check("authenticated", State.YES, detail))
    checks += [] if unreachable is None else [unreachable]
    return probe


def _look_around(
    client: ClientConfig, probe: RightsProbe, checks: list[Check]
) -> tuple[int, frozenset[str]]:
    answered = ask_for_brokers(client)
    problems = find_unreachable(answered.brokers, connect_seconds(client))
    state, detail = State.YES, f"{len(answered.brokers)}, all of which can be reached"
    if problems:
        state, detail = State.NO, describe_unreachable(client, answered, problems)
    checks.append(Check("brokers", state, f"{detail}; cluster id {probe.cluster_id()}"))
    checks.append(Check("version", State.YES, f"Kafka {release_name(probe.release)} or compatible"))
    topics = frozenset(probe.list_topics())
    checks.append(Check("topics", State.YES, f"{len(topics)} shown to us"))
    return len(answered.brokers), topics


# -- rights ----------------------------------------------------------------------------------------


def _all_wanted(file: CheckedFile, logins: Logins) -> Iterable[tuple[str, list[Wanted]]]:
    if file.worker is not None:
        yield "worker", wanted_by_worker(file.worker)
    for flow, worker in file.groups:
        yield str(flow), wanted_by_group(worker)
    for connector in file.connectors:
        yield str(connector.flow), _wanted(connector, logins)


def _wanted(connector: CheckedConnector, logins: Logins) -> list[Wanted]:
    config, worker = connector.config, connector.worker
    if isinstance(config, SourceConfig):
        return wanted_by_source(config, worker, _topics(config, logins)) if config.enabled else []
    if not isinstance(config, CheckpointConfig):
        return wanted_by_heartbeat(config, worker)
    if not config.enabled:
        return []
    login = logins[_key(config.source_client)]
    accepts = make_topic_filter(config).should_replicate_topic
    topics = sorted(filter(accepts, {*login.topics, *plain_names(config.topics)}))
    return wanted_by_checkpoint(config, worker, _groups(connector, config, login), topics)


def _topics(config: SourceConfig, logins: Logins) -> list[str]:
    """Topics to copy: those that we are shown, and those that the file names."""
    topic_filter, policy = make_topic_filter(config), flow_policy(config)
    shown = logins[_key(config.source_client)].topics
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


def _groups(connector: CheckedConnector, config: CheckpointConfig, login: Login) -> list[str]:
    """Groups to follow: the same."""
    followed = FollowedGroups(connector.flow, config, make_topic_filter(config))
    if login.probe is not None:
        with suppress(KafkaError):  # the answers about rights will show it
            followed.refresh(login.probe)
    return sorted({*followed.names, *plain_names(config.groups)})


def _rights(flow: str, rows: Sequence[Wanted], logins: Logins) -> Iterable[RightReport]:
    wanted = [row for row in rows if not _is_for_old_brokers(row, logins)]
    by_login: dict[Hashable, list[Right]] = {}
    for row in wanted:
        by_login.setdefault(_key(row.client), []).extend(row.rights)
    answers = {key: _ask(logins[key], rights) for key, rights in by_login.items()}
    remotes = _remotes_there(wanted, logins)
    found = [
        _judge(flow, row, answers[_key(row.client)], logins[_key(row.client)], remotes)
        for row in wanted
    ]
    return _one_of_both(found)


def _one_of_both(reports: Sequence[RightReport]) -> list[RightReport]:
    """Of two rights that can each be done without, one is needed."""
    lacking = [row for row in reports if row.need.unless in EITHER and row.state is State.WITHOUT]
    if len({row.need.unless for row in lacking}) < len(EITHER):
        return list(reports)
    return [
        replace(row, state=State.NO, detail="one of both is needed") if row in lacking else row
        for row in reports
    ]


def _is_for_old_brokers(row: Wanted, logins: Logins) -> bool:
    probe = logins[_key(row.client)].probe
    is_new = probe is not None and probe.release >= CONTENT_VERSION
    return row.need.unless == NEW_BROKERS and is_new


def _ask(login: Login, rights: Sequence[Right]) -> Mapping[Right, bool | KafkaError]:
    if login.probe is None:
        return dict.fromkeys(rights, KafkaError(NO_CONNECTION))
    return login.probe.ask(rights)


def _remotes_there(wanted: Sequence[Wanted], logins: Logins) -> frozenset[str]:
    """Copied topics whose remote topic is there, so that nobody has to create it."""
    copied = next((row for row in wanted if row.need.place is Place.COPIED), None)
    remote = next((row for row in wanted if row.need.place is Place.REMOTE), None)
    if copied is None or remote is None:
        return frozenset()
    shown = logins[_key(remote.client)].topics
    pairs = zip(copied.names, remote.names, strict=True)
    return frozenset(topic for topic, name in pairs if name in shown)


def _judge(
    flow: str,
    row: Wanted,
    answers: Mapping[Right, bool | KafkaError],
    login: Login,
    remotes: frozenset[str],
) -> RightReport:
    excused = {EXISTS: login.topics, REMOTE_EXISTS: remotes}.get(row.need.unless, frozenset())
    asked = tuple(right for right in row.rights if right.name not in excused)
    errors = [error for right in asked if isinstance(error := answers[right], KafkaError)]
    denied = tuple(right for right in asked if answers[right] is False)
    strict = not row.need.is_optional or row.need.unless in (EXISTS, REMOTE_EXISTS)
    state = State.YES
    if denied:
        state = State.NO if strict else State.WITHOUT
    elif errors:
        state = State.UNKNOWN
    detail = str(errors[0]) if errors else ""
    if not asked:
        detail = f"not needed, {row.need.unless}"
    elif denied and not strict:
        detail = f"not needed if {row.need.unless}"
    principal = login.report.principal
    # Each names one resource: a rule for a prefix would also apply to topics that are open to
    # everyone as long as no ACL is about them (allow.everyone.if.no.acl.found).
    grants = tuple(grant_command(row.client, right) for right in denied[:MOST_GRANTS])
    is_untold = state is State.UNKNOWN and all(isinstance(each, NotToldError) for each in errors)
    return RightReport(
        flow,
        row.client.alias,
        principal,
        row.need,
        state,
        tuple(row.rights),
        denied,
        grants,
        detail,
        is_untold,
    )
