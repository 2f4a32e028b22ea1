"""The table of fields that have no counterpart: why, and what to do instead.

Names are those of Strimzi's schema (0.40 to 1.0, `v1beta2` and `v1`); `[]` is the index of an
element. A field that is neither read by `resource.py` and its neighbours nor in the table is
UNKNOWN, and listed too.
"""

from __future__ import annotations

from collections.abc import Mapping

from sparkmirror.tools.convert.ledger import Fate

UNKNOWN = Fate(
    "sparkmirror does not know this field of KafkaMirrorMaker2",
    "check its spelling; if it is correct, edit the written files",
)
BY_KUBERNETES = Fate(
    "Kubernetes and its tools write it, not you",
    "nothing: the objects of kubernetes.yaml get their own",
    is_shared=True,
)
# Paths of clusters.
CLUSTERS = ("spec.clusters[]", "spec.target", "spec.mirrors[].source")
CONNECTORS = ("sourceConnector", "checkpointConnector", "heartbeatConnector")
EDIT = "change the object in kubernetes.yaml"
NO_OBJECT = Fate("the manifests have no such object", "add one to kubernetes.yaml if you need it")
NO_JVM = "the JVM here is Spark's, and the program itself is Python"

_METADATA = {
    f"metadata.{name}": BY_KUBERNETES
    for name in (
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "managedFields",
        "selfLink",
        "ownerReferences",
        "finalizers",
        "generateName",
    )
}

_SPEC = {
    "spec.version": Fate(
        "selects the Kafka version that Strimzi runs; sparkmirror runs no Kafka code",
        "nothing: one sparkmirror works with brokers of all supported versions",
    ),
    "spec.image": Fate(
        "names an image of Strimzi",
        "build deploy/Dockerfile, push it, and set image in kubernetes.yaml",
    ),
    "spec.livenessProbe": Fate("the manifests have the probes that sparkmirror needs", EDIT),
    "spec.readinessProbe": Fate("the manifests have the probes that sparkmirror needs", EDIT),
    "spec.jvmOptions": Fate(
        NO_JVM,
        "set the memory of the pod with spec.resources, that of Spark's JVM with "
        "spark.driver.memory in the properties file",
    ),
    "spec.jmxOptions": Fate("there is no JMX", "see docs/operations.md for what to watch"),
    "spec.logging": Fate(
        "configures log4j, which sparkmirror does not use",
        "add --log-level DEBUG or --log-format json to args in kubernetes.yaml; a worker also "
        "takes PUT /admin/loggers",
    ),
    "spec.clientRackInitImage": Fate(
        "no init container asks the node for its rack", "set source.consumer.client.rack by hand"
    ),
    "spec.rack": Fate(
        "no init container asks the node for its rack",
        "set source.consumer.client.rack in sourceConnector.config if all pods are in one rack",
    ),
    "spec.metricsConfig": Fate(
        "sparkmirror serves /metrics without it (docs/metrics.md)",
        "watch each flow in the log, GET /connectors/NAME/status, and the brokers' metrics",
    ),
    "spec.tracing": Fate(
        "records are forwarded as batches without reading their headers",
        "trace producers and consumers themselves",
    ),
}

_TEMPLATE = {
    **{
        f"spec.template.{name}": NO_OBJECT
        for name in (
            "podSet",
            "headlessService",
            "podDisruptionBudget",
            "serviceAccount",
            "clusterRoleBinding",
            "initContainer",
            "jmxSecret",
            "buildPod",
            "buildContainer",
            "buildConfig",
            "buildServiceAccount",
        )
    },
    "spec.template.deployment": Fate("the manifests have a Deployment of their own", EDIT),
    "spec.template.apiService": Fate("the manifests have a Service of their own", EDIT),
    "spec.template.pod.securityContext": Fate(
        "the pod runs as user 10001, which the image has, with the strictest settings", EDIT
    ),
    "spec.template.connectContainer.securityContext": Fate(
        "the container has no privileges and a read-only file system", EDIT
    ),
    "spec.template.pod.tmpDirSizeLimit": Fate(
        "Spark keeps its working files in /tmp and needs more than Strimzi's 5Mi",
        "set sizeLimit of the volume tmp in kubernetes.yaml, at least 1Gi",
    ),
}

_LOGIN = {
    "audience": Fate(
        "the request for a token has no audience",
        "let the token server set the client's audience, or use a scope",
    ),
    "refreshToken": Fate(
        "tokens are not refreshed but requested again", "use clientId and clientSecret"
    ),
    "username": Fate("there is no password grant", "use clientId and clientSecret"),
    "passwordSecret": Fate("there is no password grant", "use clientId and clientSecret"),
    "clientAssertion": Fate(
        "is not read from the resource", "set sasl.oauthbearer.assertion.* in the written file"
    ),
    "clientAssertionLocation": Fate(
        "is not read from the resource", "set sasl.oauthbearer.assertion.file in the written file"
    ),
    "clientAssertionType": Fate(
        "is not read from the resource", "set sasl.oauthbearer.assertion.* in the written file"
    ),
    "saslExtensions": Fate(
        "is not read from the resource",
        'add extension_NAME="value" to sasl.jaas.config in the written file',
    ),
    "grantType": Fate("the grant is client_credentials", "use clientId and clientSecret"),
    "tokenEndpointUri": Fate("the token is given, so no server is contacted", "nothing"),
    "accessTokenLocation": Fate("accessToken takes precedence", "nothing"),
    "httpRetries": Fate(
        "requests for a token are retried for sasl.login.retry.backoff.max.ms, not a fixed number "
        "of times",
        "set sasl.login.retry.backoff.max.ms in the written file",
    ),
    "maxTokenExpirySeconds": Fate(
        "a token is valid for the time that it contains",
        "let the token server issue shorter lifetimes",
    ),
    "accessTokenIsJwt": Fate("tokens are always read as JWTs", "let the token server issue JWTs"),
    "enableMetrics": Fate("there are no metrics of logins", "watch the log"),
    "includeAcceptHeader": Fate("the Accept header is always sent", "nothing"),
}

_CONNECTOR = {
    "autoRestart": Fate(
        "sparkmirror always restarts what has failed, after 1 s to 60 s, without a limit",
        "nothing: restarts cannot be disabled or limited",
    ),
    "version": Fate("there is one version of each connector", "nothing"),
    "listOffsets": Fate(
        "asks the operator for a single action",
        "GET /connectors/NAME/offsets of a worker (--format connectors)",
    ),
    "alterOffsets": Fate(
        "asks the operator for a single action",
        "PATCH /connectors/NAME/offsets of a stopped connector (--format connectors)",
    ),
}

_MIRROR = {
    "spec.mirrors[].heartbeatConnector": Fate(
        "apiVersion v1 has no heartbeat connector: Strimzi drops the field",
        "set emit.heartbeats.enabled=true for the flow in the written file if you want heartbeats",
    ),
}

NOT_CARRIED: Mapping[str, Fate] = {
    "status": BY_KUBERNETES,
    **_METADATA,
    "metadata.annotations": Fate(
        "belong to the resource, not to its pods",
        "put annotations for pods into spec.template.pod.metadata.annotations",
    ),
    **_SPEC,
    **_TEMPLATE,
    **{f"{at}.authentication.{name}": fate for at in CLUSTERS for name, fate in _LOGIN.items()},
    **{
        f"spec.mirrors[].{connector}.{name}": fate
        for connector in CONNECTORS
        for name, fate in _CONNECTOR.items()
    },
    **_MIRROR,
}
