"""How workers sign the requests that they send to each other.

Mirrors: the inter.worker.* keys of org.apache.kafka.connect.runtime.distributed.DistributedConfig
(KIP-507). Connect accepts every algorithm of its JVM; here only those that Java and Python share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparkmirror.config.config_def import Definition, Key, Type, fill
from sparkmirror.config.findings import Findings

DEFAULT = "HmacSHA256"
KEY_SIZE = "inter.worker.key.size"
SIGNATURE_ALGORITHM = "inter.worker.signature.algorithm"
VERIFICATION_ALGORITHMS = "inter.worker.verification.algorithms"
# Java's KeyGenerator rejects smaller keys for these algorithms.
SMALLEST_KEY_BITS = 40
LARGEST_KEY_BITS = 8 * 1024


@dataclass(frozen=True, slots=True)
class Mac:
    """One of Java's algorithms: its name in Python, and the size of Java's keys for it."""

    digest: str
    key_bytes: int


MACS: Mapping[str, Mac] = {
    "HmacSHA256": Mac("sha256", 32),
    "HmacSHA224": Mac("sha224", 28),
    "HmacSHA384": Mac("sha384", 48),
    "HmacSHA512": Mac("sha512", 64),
    "HmacSHA512/224": Mac("sha512_224", 28),
    "HmacSHA512/256": Mac("sha512_256", 32),
    "HmacSHA3-224": Mac("sha3_224", 28),
    "HmacSHA3-256": Mac("sha3_256", 32),
    "HmacSHA3-384": Mac("sha3_384", 48),
    "HmacSHA3-512": Mac("sha3_512", 64),
    "HmacSHA1": Mac("sha1", 64),
}

INTER_WORKER_KEYS = Definition(
    Key(
        name="inter.worker.key.generation.algorithm",
        type=Type.STRING,
        default=DEFAULT,
        one_of=tuple(MACS),
        attribute="key_generation_algorithm",
        doc="Algorithm of the session keys with which workers sign requests to each other.",
    ),
    Key(
        name=KEY_SIZE,
        type=Type.INT,
        default=None,
        at_least=SMALLEST_KEY_BITS,
        at_most=LARGEST_KEY_BITS,
        shown_default="the algorithm's default",
        attribute="key_size_bits",
        doc="Size of session keys in bits.",
    ),
    Key(
        name="inter.worker.key.ttl.ms",
        type=Type.INT,
        default=3600000,
        at_least=0,
        attribute="key_ttl_ms",
        doc="How often the leader replaces the session key; 0: never.",
    ),
    Key(
        name=SIGNATURE_ALGORITHM,
        type=Type.STRING,
        default=DEFAULT,
        one_of=tuple(MACS),
        attribute="signature_algorithm",
        doc="The algorithm that this worker signs with.",
    ),
    Key(
        name=VERIFICATION_ALGORITHMS,
        type=Type.LIST,
        default=(DEFAULT,),
        one_of=tuple(MACS),
        non_empty=True,
        attribute="verification_algorithms",
        doc="The algorithms that this worker accepts; its own must be among them.",
    ),
)


@dataclass(frozen=True, slots=True)
class InterWorkerConfig:
    """Session keys and signatures of one group of workers."""

    key_generation_algorithm: str = DEFAULT
    key_size_bits: int | None = None
    key_ttl_ms: int = 3600000
    signature_algorithm: str = DEFAULT
    verification_algorithms: tuple[str, ...] = (DEFAULT,)

    @property
    def key_bytes(self) -> int:
        """The length of a session key."""
        if self.key_size_bits is None:
            return MACS[self.key_generation_algorithm].key_bytes
        return (self.key_size_bits + 7) // 8


def inter_worker_config(values: Mapping[str, Any], findings: Findings) -> InterWorkerConfig:
    """The typed settings. Never raises: errors are in the findings."""
    config = fill(InterWorkerConfig, INTER_WORKER_KEYS, values)
    if config.signature_algorithm not in config.verification_algorithms:
        findings.error(
            SIGNATURE_ALGORITHM,
            config.signature_algorithm,
            f"not among {VERIFICATION_ALGORITHMS} ({', '.join(config.verification_algorithms)})",
            f"add it to {VERIFICATION_ALGORITHMS} on all workers",
        )
    return config
