"""No field vanishes silently: each is in the files, in the list, or its change is an error.

The resources here have every field of Strimzi's schema that is known, and some that are not. Each
value is changed in turn: the files or the list must change, unless the list names the field.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from sparkmirror.errors import ConfigErrors
from sparkmirror.tools.convert.conversion import Conversion, Format
from sparkmirror.tools.convert.fields import NOT_CARRIED
from sparkmirror.tools.convert.ledger import pattern_of
from tests.tools.convert.resources import leaves, notes_of, run

META = """\
  name: mirror
  namespace: kafka
  labels: {team: a, app.kubernetes.io/part-of: b}
  annotations: {strimzi.io/pause-reconciliation: "false"}
  uid: 1-2
  resourceVersion: "7"
  generation: 3
  creationTimestamp: 2024-01-01T00:00:00Z
  managedFields: [{manager: kubectl}]
  selfLink: /x
  ownerReferences: [{name: x}]
  finalizers: [x]
"""
PODS = """\
  version: 4.1.0
  replicas: 2
  image: quay.io/strimzi/kafka
  resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {memory: 2Gi}}
  livenessProbe: {initialDelaySeconds: 5, timeoutSeconds: 5}
  readinessProbe: {initialDelaySeconds: 5, timeoutSeconds: 5}
  jvmOptions:
    -Xms: 1g
    -XX: {UseG1GC: true}
    gcLoggingEnabled: true
    javaSystemProperties: [{name: a, value: b}]
  jmxOptions: {authentication: {type: password}}
  logging: {type: inline, loggers: {connect.root.logger.level: INFO}}
  clientRackInitImage: image
  rack: {topologyKey: zone}
  metricsConfig: {type: jmxPrometheusExporter, valueFrom: {configMapKeyRef: {name: a, key: b}}}
  tracing: {type: opentelemetry}
  template:
    deployment: {deploymentStrategy: RollingUpdate}
    podSet: {metadata: {labels: {a: b}}}
    apiService: {ipFamilyPolicy: SingleStack}
    headlessService: {ipFamilyPolicy: SingleStack}
    podDisruptionBudget: {maxUnavailable: 1}
    serviceAccount: {metadata: {annotations: {a: b}}}
    clusterRoleBinding: {metadata: {labels: {a: b}}}
    initContainer: {env: [{name: a, value: b}]}
    jmxSecret: {metadata: {labels: {a: b}}}
    buildPod: {priorityClassName: a}
    buildContainer: {env: [{name: a, value: b}]}
    buildConfig: {pullSecret: a}
    buildServiceAccount: {metadata: {labels: {a: b}}}
    pod:
      metadata: {labels: {a: b}, annotations: {c: d}}
      imagePullSecrets: [{name: pull}]
      securityContext: {runAsUser: 1}
      terminationGracePeriodSeconds: 40
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
              - matchExpressions: [{key: a, operator: In, values: [b]}]
      tolerations: [{key: a, operator: Exists}]
      topologySpreadConstraints:
        - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}
      priorityClassName: high
      schedulerName: mine
      hostAliases: [{ip: 10.0.0.1, hostnames: [a]}]
      enableServiceLinks: true
      dnsPolicy: Default
      dnsConfig: {nameservers: [10.0.0.2]}
      tmpDirSizeLimit: 5Mi
      volumes: [{name: more, secret: {secretName: more}}]
      unheardOf: 1
    connectContainer:
      env: [{name: PLAIN, value: b}, {name: MY_PASSWORD, value: literal-password-1}]
      securityContext: {runAsUser: 1}
      volumeMounts: [{name: more, mountPath: /mnt/more}]
  externalConfiguration:
    env: [{name: EXTERNAL, valueFrom: {secretKeyRef: {name: a, key: b}}}]
    volumes: [{name: ext, configMap: {name: c}}]
  unheardOf: {a: {b: 1}}
"""
CONNECTORS = """\
      sourceConnector:
        tasksMax: 2
        state: running
        version: "4.1"
        autoRestart: {enabled: true, maxRestarts: 5}
        listOffsets: {toConfigMap: {name: a}}
        alterOffsets: {fromConfigMap: {name: a}}
        unheardOf: 1
        config:
          name: x
          connector.class: y
          tasks.max: 9
          topics: overridden
          offset.lag.max: 50
          replication.policy.separator: "-"
          sync.topic.acls.enabled: false
          source.consumer.client.id: ${strimzienv:EXTERNAL}
          source.cluster.request.timeout.ms: 1
          producer.override.linger.ms: 5
          transforms: a
          topcs: typo
          emit.heartbeats.interval.seconds: 4
          producer.override.sasl.jaas.config: with-a-literal-secret
      checkpointConnector:
        tasksMax: 3
        pause: true
        autoRestart: {enabled: true}
        config: {sync.group.offsets.enabled: true, replication.policy.separator: _}
      topicsPattern: orders
      topicsExcludePattern: not-.*
      groupsPattern: app-.*
      groupsExcludePattern: no-.*
      unheardOf: 1
"""
LOGIN = """\
{at}tls:
{at}  trustedCertificates:
{at}    - {{secretName: ca, certificate: a.crt}}
{at}    - {{secretName: cb, pattern: "*.crt"}}
{at}authentication:
{at}  type: oauth
{at}  clientId: id
{at}  scope: scope
{at}  audience: audience
{at}  username: user
{at}  passwordSecret: {{secretName: p, password: q}}
{at}  tokenEndpointUri: https://login.example.com
{at}  connectTimeoutSeconds: 1
{at}  readTimeoutSeconds: 2
{at}  httpRetries: 3
{at}  httpRetryPauseMs: 4
{at}  clientSecret: {{secretName: s, key: k}}
{at}  refreshToken: {{secretName: r, key: k}}
{at}  clientAssertion: {{secretName: r, key: k}}
{at}  clientAssertionLocation: /x
{at}  clientAssertionType: t
{at}  saslExtensions: {{a: b}}
{at}  grantType: g
{at}  tlsTrustedCertificates:
{at}    - {{secretName: t, certificate: c}}
{at}    - {{secretName: u, certificate: d}}
{at}  disableTlsHostnameVerification: true
{at}  maxTokenExpirySeconds: 5
{at}  accessTokenIsJwt: false
{at}  enableMetrics: true
{at}  includeAcceptHeader: false
{at}  unheardOf: 1
"""
WORKER_CONFIG = """\
        config.storage.replication.factor: 1
        offset.flush.interval.ms: 1000
        producer.compression.type: lz4
        consumer.fetch.max.bytes: 1
        admin.request.timeout.ms: 1
        ssl.protocol: TLSv1.2
        security.protocol: SSL
        rest.port: 1
        key.converter: org.example.Converter
        config.providers: env,vault
        config.providers.env.class: org.apache.kafka.common.config.provider.EnvVarConfigProvider
        config.providers.env.param.allowlist.pattern: .*
        config.providers.vault.class: com.example.Vault
        group.id: mine
        offset.storage.topic: o
        config.storage.topic: c
        status.storage.topic: s
"""
SOURCE_CONFIG = """\
        ssl.cipher.suites: A
        acks: all
        bootstrap.servers: elsewhere:9092
        config.providers: env
"""
OLD = f"""\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata:
{META}spec:
{PODS}  connectCluster: target
  clusters:
    - alias: source
      bootstrapServers: source:9092
      unheardOf: 1
{LOGIN.format(at="      ")}      config:
{SOURCE_CONFIG}    - alias: target
      bootstrapServers: target:9092
      authentication:
        type: scram-sha-512
        username: user
        passwordSecret: {{secretName: user, password: password}}
      config:
{WORKER_CONFIG}    - alias: spare
      bootstrapServers: spare:9092
  mirrors:
    - sourceCluster: source
      targetCluster: target
      topicsBlacklistPattern: old
      groupsBlacklistPattern: old
{CONNECTORS}      heartbeatConnector:
        tasksMax: 1
        state: stopped
        pause: false
        autoRestart: {{enabled: true}}
        config: {{heartbeats.topic.replication.factor: 1}}
status: {{conditions: [{{type: Ready}}]}}
"""
NEW = f"""\
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
metadata:
{META}spec:
{PODS}  target:
      alias: target
      bootstrapServers: target:9092
      groupId: g
      configStorageTopic: c
      statusStorageTopic: s
      offsetStorageTopic: o
      unheardOf: 1
{LOGIN.format(at="      ")}      config:
{WORKER_CONFIG}  mirrors:
    - source:
        alias: source
        bootstrapServers: source:9092
        tls: {{}}
        authentication:
          type: tls
          certificateAndKey: {{secretName: user, certificate: user.crt, key: user.key}}
{CONNECTORS}      heartbeatConnector: {{tasksMax: 1}}
    - source:
        alias: second
        bootstrapServers: second:9092
        tls: {{trustedCertificates: [{{secretName: ca, certificate: a.crt}}]}}
        authentication:
          type: custom
          sasl: true
          config:
            sasl.mechanism: PLAIN
            sasl.jaas.config: >-
              org.apache.kafka.common.security.plain.PlainLoginModule required
              username="a" password="${{strimzisecrets:kafka/a:b}}";
            acks: all
      sourceConnector: {{}}
    - source:
        alias: third
        bootstrapServers: third:9092
        authentication:
          type: oauth
          accessToken: {{secretName: t, key: k}}
          accessTokenLocation: /mnt/x
          tokenEndpointUri: https://login.example.com
      sourceConnector: {{config: {{}}}}
    - source:
        alias: fourth
        bootstrapServers: fourth:9092
        authentication: {{type: oauth, accessTokenLocation: /mnt/x}}
      sourceConnector: {{}}
"""
RESOURCES = {"v1beta2": OLD, "v1": NEW}


def places(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The ways to all values that are no mappings or lists."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for place, below in inner:
        if isinstance(below, dict | list) and below:
            yield from places(below, (*at, place))
        else:
            yield (*at, place)


def other(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else f"{value}x"


def path_of(way: tuple[str | int, ...]) -> str:
    parts = [f"[{place}]" if isinstance(place, int) else f".{place}" for place in way]
    return "".join(parts).removeprefix(".")


def changed_at(value: Any, way: tuple[str | int, ...]) -> str:
    """The resource with another value there."""
    new = copy.deepcopy(value)
    at = new
    for place in way[:-1]:
        at = at[place]
    at[way[-1]] = other(at[way[-1]])
    return yaml.safe_dump(new)


def is_listed(path: str, done: Conversion) -> bool:
    return any(
        path == listed or path.startswith((f"{listed}.", f"{listed}[")) for listed in notes_of(done)
    )


def result(text: str, format_: Format) -> object:
    try:
        done = run(text, format_)
    except ConfigErrors as errors:
        return str(errors)
    return done.files, done.not_carried


@pytest.mark.parametrize("format_", list(Format))
@pytest.mark.parametrize("name", RESOURCES)
def test_no_field_vanishes(name: str, format_: Format) -> None:
    value = yaml.load(RESOURCES[name], Loader=yaml.BaseLoader)
    typed = typed_as_kubernetes(value)
    text = yaml.safe_dump(typed)
    done = run(text, format_)
    before = done.files, done.not_carried
    vanished = [
        path_of(way)
        for way in places(typed)
        if not is_listed(path_of(way), done) and result(changed_at(typed, way), format_) == before
    ]
    assert vanished == []


def typed_as_kubernetes(value: Any) -> Any:
    """Numbers and booleans as such, dates as text."""
    if isinstance(value, dict):
        return {key: typed_as_kubernetes(each) for key, each in value.items()}
    if isinstance(value, list):
        return [typed_as_kubernetes(each) for each in value]
    if value in ("true", "false"):
        return value == "true"
    return int(value) if re.fullmatch(r"[0-9]+", value) else value


def test_the_resources_have_every_field_of_the_table() -> None:
    """A row that no resource reaches would be untested."""
    seen: set[str] = set()
    for text in RESOURCES.values():
        for done in (run(text), run(text, Format.CONNECTORS)):
            seen |= {pattern_of(path) for path in notes_of(done)}
    unlisted = set(NOT_CARRIED) - seen
    # One cluster of the resources has each login, one connector each field: rows are the same.
    families = {re.sub(r"^spec\..*\.(authentication\.|\w+Connector\.)", r"\1", row) for row in seen}
    left = {
        row
        for row in unlisted
        if re.sub(r"^spec\..*\.(authentication\.|\w+Connector\.)", r"\1", row) not in families
        and not re.search(r"Connector\.(version|listOffsets|alterOffsets|autoRestart)$", row)
    }
    assert left == {"metadata.deletionTimestamp", "metadata.generateName"}


def test_every_leaf_has_a_path() -> None:
    """What this test walks is what the ledger walks."""
    value = yaml.safe_load(OLD.replace("2024-01-01T00:00:00Z", "x"))
    assert sorted(leaves(value)) == sorted(path_of(way) for way in places(value))


@pytest.mark.parametrize("text", RESOURCES.values(), ids=RESOURCES)
def test_unknown_fields_are_listed(text: str) -> None:
    notes = notes_of(run(text))
    unheard = {path: reason for path, reason in notes.items() if "unheardOf" in path}
    assert unheard
    assert set(unheard.values()) == {"sparkmirror does not know this field of KafkaMirrorMaker2"}
    assert "spec.unheardOf" in unheard
