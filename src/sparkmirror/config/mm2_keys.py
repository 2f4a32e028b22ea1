"""The keys that only an mm2 file has."""

from __future__ import annotations

from sparkmirror.config.config_def import Definition, Importance, Key, Type
from sparkmirror.config.expansion import CLUSTERS
from sparkmirror.config.files.providers import CONFIG_PROVIDERS
from sparkmirror.config.keys.client_keys import no_effect
from sparkmirror.config.security.allowed_access import ALLOWED_KEYS

SPARK = "spark"

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
        name="dedicated.mode.enable.internal.rest",
        type=Type.BOOLEAN,
        default=False,
        importance=Importance.HIGH,
        doc="Whether the nodes of a dedicated cluster communicate with each other.",
    ),
    *ALLOWED_KEYS,
    *no_effect(
        "a file of flows has no REST API",
        Type.STRING,
        "listeners",
        "rest.advertised.host.name",
        "rest.advertised.port",
        "rest.advertised.listener",
        "access.control.allow.origin",
        "access.control.allow.methods",
        "response.http.headers.config",
        "ssl.client.auth",
    ),
)
