"""Connects and logs in to every cluster that a file names, and reports each step.

Runs on: any machine; changes nothing on any cluster.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.mirror_configs import CheckpointConfig, SourceConfig
from sparkmirror.config.worker_config import WorkerConfig
from sparkmirror.errors import MirrorError, UnsupportedVersionError
from sparkmirror.tools.check.check_report import (
    Check,
    CheckResult,
    ClusterReport,
)
from sparkmirror.tools.check.checked_file import CheckedFile
from sparkmirror.wire.admin.permission_probe import PermissionProbe
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
EXPIRES_SOON_DAYS = 30


@dataclass(frozen=True, slots=True)
class ClusterLogin:
    """One login at one cluster; `topics` are those that the cluster lists for it."""

    report: ClusterReport
    probe: PermissionProbe | None
    topics: frozenset[str] = frozenset()
    brokers: int = 0


Logins = Mapping[Hashable, ClusterLogin]


def cluster_key(client: ClientConfig) -> Hashable:
    """The same for clients that brokers cannot distinguish."""
    return client.bootstrap_servers, tuple(sorted(client.security.items(), key=lambda row: row[0]))


def clients_of(file: CheckedFile) -> dict[Hashable, ClientConfig]:
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
        clients.setdefault(cluster_key(client), client)
    return clients


def _own_clients(worker: WorkerConfig) -> list[ClientConfig]:
    return [worker.client, worker.producer.client]


def log_in(client: ClientConfig) -> ClusterLogin:
    checks: list[Check] = []
    probe = None
    topics: frozenset[str] = frozenset()
    brokers = 0
    try:
        if _reach(client, checks) and _check_tls(client, checks):
            probe = _authenticate(client, checks)
        if probe is not None:
            brokers, topics = _check_brokers(client, probe, checks)
    except MirrorError as error:
        checks.append(Check("connection", CheckResult.NO, str(error)))
    principal = principal_of(client)
    report = ClusterReport(client.alias, client.bootstrap_servers, principal, tuple(checks))
    return ClusterLogin(report, probe, topics, brokers)


def _reach(client: ClientConfig, checks: list[Check]) -> bool:
    """Whether any of the addresses accepts connections; reports those that do not."""
    problems = [
        f"{server}: {problem}"
        for server in client.bootstrap_servers
        if (problem := connect_to(server, connect_seconds(client)))
    ]
    is_any = len(problems) < len(client.bootstrap_servers)
    if not is_any:
        problems.append(f"check {client.servers_key} and that the brokers are up")
    checks.append(
        Check("reachable", CheckResult.YES if is_any else CheckResult.NO, "; ".join(problems))
    )
    return is_any


def _check_tls(client: ClientConfig, checks: list[Check]) -> bool:
    if not Security.of(client).is_tls:
        checks.append(Check("TLS", CheckResult.WITHOUT, "security.protocol does not require it"))
        return True
    found = [_check_certificate(client, server) for server in client.bootstrap_servers]
    checks += found
    return any(check.state is CheckResult.YES for check in found)


def _check_certificate(client: ClientConfig, server: str) -> Check:
    what = f"TLS {server}"
    try:
        shown = fetch_certificate(client, server)
    except MirrorError as error:
        return Check(what, CheckResult.NO, str(error))
    name = "chain and name are valid" if shown.is_name_checked else "chain is valid, name unchecked"
    soon = " SOON" if shown.days_left < EXPIRES_SOON_DAYS else ""
    detail = (
        f"{shown.version}, {shown.suite}; {shown.subject}, issued by {shown.issuer}: {name}; "
        f"expires{soon} {shown.not_after:%Y-%m-%d} (in {shown.days_left} days)"
    )
    return Check(what, CheckResult.YES, detail)


def _authenticate(client: ClientConfig, checks: list[Check]) -> PermissionProbe | None:
    began = time.monotonic()
    try:
        probe: PermissionProbe | None = PermissionProbe(client, TIMEOUT_MS)
        unreachable = None
    except AdvertisedError as error:  # known only after a successful login
        probe, unreachable = None, Check("brokers", CheckResult.NO, str(error))
    except UnsupportedVersionError as error:
        checks.append(Check("version", CheckResult.NO, str(error)))
        return None
    except MirrorError as error:
        checks.append(Check("authenticated", CheckResult.NO, str(error)))
        return None
    security = Security.of(client)
    how = security.setting("sasl.mechanism") if security.is_sasl else security.protocol
    detail = f"{principal_of(client)} ({how}), {time.monotonic() - began:.1f} s"
    checks.append(Check("authenticated", CheckResult.YES, detail))
    checks += [] if unreachable is None else [unreachable]
    return probe


def _check_brokers(
    client: ClientConfig, probe: PermissionProbe, checks: list[Check]
) -> tuple[int, frozenset[str]]:
    listed = ask_for_brokers(client)
    problems = find_unreachable(listed.brokers, connect_seconds(client))
    state, detail = CheckResult.YES, f"{len(listed.brokers)}, all of which can be reached"
    if problems:
        state, detail = CheckResult.NO, describe_unreachable(client, listed, problems)
    checks.append(Check("brokers", state, f"{detail}; cluster id {probe.cluster_id()}"))
    checks.append(
        Check("version", CheckResult.YES, f"Kafka {release_name(probe.release)} or compatible")
    )
    topics = frozenset(probe.list_topics())
    checks.append(Check("topics", CheckResult.YES, f"{len(topics)} listed for us"))
    return len(listed.brokers), topics
