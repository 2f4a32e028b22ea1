"""Classes that settings name: MirrorMaker 2's own, known by their Java names, and users' in Python.

No Java class is loaded. A user's own policy or filter is a Python class, named `module:Class`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from sparkmirror.config.config_def import BadValue

MIRROR = "org.apache.kafka.connect.mirror."
DEFAULT_POLICY = f"{MIRROR}DefaultReplicationPolicy"
IDENTITY_POLICY = f"{MIRROR}IdentityReplicationPolicy"
DEFAULT_TOPIC_FILTER = f"{MIRROR}DefaultTopicFilter"
DEFAULT_GROUP_FILTER = f"{MIRROR}DefaultGroupFilter"
DEFAULT_CONFIG_PROPERTY_FILTER = f"{MIRROR}DefaultConfigPropertyFilter"
FORWARDING_ADMIN = "org.apache.kafka.clients.admin.ForwardingAdmin"
BYTE_ARRAY_CONVERTER = "org.apache.kafka.connect.converters.ByteArrayConverter"
PYTHON_CLASS = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)

# Widely copied class that keeps topic names, as Identity does (published with AWS's MSK samples).
SAME_NAME_POLICY = "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy"


def known_class(
    what: str, *names: str, same: Mapping[str, str] | None = None
) -> Callable[[str], str]:
    """A converter to the full name of one of `names`, or to a Python class as written.

    `same` maps further names to the known ones that they mean.
    """
    known = {name: name for name in names}
    known |= {name.rpartition(".")[2]: name for name in names} | dict(same or {})

    def convert(value: str) -> str:
        if value in known:
            return known[value]
        if PYTHON_CLASS.fullmatch(value):
            return value
        raise BadValue(
            "unknown class; Java classes cannot be loaded",
            f"write the {what} as a Python class and name it module:Class, or use one of "
            + ", ".join(names),
        )

    return convert


policy_class = known_class(
    "replication policy", DEFAULT_POLICY, IDENTITY_POLICY, same={SAME_NAME_POLICY: IDENTITY_POLICY}
)
topic_filter_class = known_class("topic filter", DEFAULT_TOPIC_FILTER)
group_filter_class = known_class("group filter", DEFAULT_GROUP_FILTER)
config_property_filter_class = known_class("property filter", DEFAULT_CONFIG_PROPERTY_FILTER)
forwarding_admin_class = known_class("forwarding admin", FORWARDING_ADMIN)
