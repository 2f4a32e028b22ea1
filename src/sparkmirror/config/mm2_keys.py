"""The keys that only an mm2 file has."""

from __future__ import annotations

from sparkmirror.config.config_def import Definition, Importance, Key, Type
from sparkmirror.config.expansion import CLUSTERS
from sparkmirror.config.files.providers import CONFIG_PROVIDERS
from sparkmirror.config.security.allowed_access import ALLOWED_KEYS

SPARK = "spark"
# Of the REST API's own certificates.
HTTPS_PREFIX = "listeners.https."
INTERNAL_REST = "dedicated.mode.enable.internal.rest"
# Keys of a worker's REST API that a node of dedicated mode has, too, at the top level.
NODE_REST_KEYS = (
    "listeners",
    "rest.advertised.host.name",
    "rest.advertised.port",
    "rest.advertised.listener",
    "access.control.allow.origin",
    "access.control.allow.methods",
    "response.http.headers.config",
    "ssl.client.auth",
    "rest.extension.classes",
    "rest.basic.auth.users.file",
    "rest.read.only.users",
    "rest.max.request.bytes",
    "rest.max.requests.per.second",
)
# Of `config/worker/metrics_keys.py`: a node has them, too.
NODE_METRICS_KEYS = tuple(
    f"sparkmirror.metrics.{name}"
    for name in ("listeners", "per.partition", "otlp.endpoint", "otlp.interval.ms")
)

MM2_KEYS = Definition(
    Key(
        name=CLUSTERS,
        type=Type.LIST,
        importance=Importance.HIGH,
        non_empty=True,
        doc="Aliases of the clusters. Each needs `<alias>.bootstrap.servers`.",
    ),
    Key(
        name=CONFIG_PROVIDERS,
        type=Type.LIST,
        default=(),
        doc="Names of config providers; see the section about them.",
    ),
    Key(
        name=INTERNAL_REST,
        type=Type.BOOLEAN,
        default=False,
        importance=Importance.HIGH,
        doc="Whether each node has a REST API, Connect's own under `/<source>/<target>`, at "
        "`listeners` (KIP-710). Nodes share the tasks without it, too. The keys of the REST API "
        "and `listeners.https.ssl.*` are those of a worker.",
    ),
    *ALLOWED_KEYS,
)
