"""How Strimzi's rules show names: label values keep the quotes that JMX puts around them.

Runs on: worker. Pure. Mirrors: org.apache.kafka.common.utils.Sanitizer.jmxSanitize.
"""

from __future__ import annotations

import re

# Other names are quoted; `\w` of Java is ASCII.
PLAIN = re.compile(r"[\w\-%. \t]*", re.ASCII)
ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "*": "\\*", "?": "\\?", "\n": "\\n"})


def jmx_name(name: str) -> str:
    """As the value of a key of an MBean's name."""
    return name if PLAIN.fullmatch(name) else f'"{name.translate(ESCAPED)}"'


def consumer_id(flow: str, connector: str, task: int) -> str:
    """The client id of the consumer that MirrorMaker 2's source task has."""
    return jmx_name(f"{flow}|{connector}-{task}|replication-consumer")


def producer_id(connector: str, task: int) -> str:
    """The client id of the producer that Connect gives a task."""
    return jmx_name(f"connector-producer-{connector}-{task}")


def object_name(domain: str, kind: str, keys: str, attribute: str) -> str:
    """What Strimzi's rules put into `_objectname` to tell three attributes apart."""
    return f"{domain}<type={kind}, {keys}><>{attribute}"
