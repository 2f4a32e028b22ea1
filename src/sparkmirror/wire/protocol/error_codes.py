"""Kafka's error codes, and what each means for a request of ours.

Everything that decides whether an error is retried reads this table.
"""

from __future__ import annotations

from typing import NamedTuple

from sparkmirror.errors import BrokerError


class ErrorCode(NamedTuple):
    """One row: `retriable` = the same request may succeed later; `refresh` = metadata first."""

    code: int
    name: str
    retriable: bool
    refresh: bool


ROWS = (
    ErrorCode(-1, "UNKNOWN_SERVER_ERROR", False, False),
    ErrorCode(0, "NONE", False, False),
    ErrorCode(1, "OFFSET_OUT_OF_RANGE", False, False),
    # Bytes damaged on the way: the copy in our buffer is still good (its CRC was checked).
    ErrorCode(2, "CORRUPT_MESSAGE", True, False),
    # A topic just created, or one that the connector will recreate.
    ErrorCode(3, "UNKNOWN_TOPIC_OR_PARTITION", True, True),
    ErrorCode(5, "LEADER_NOT_AVAILABLE", True, True),
    ErrorCode(6, "NOT_LEADER_OR_FOLLOWER", True, True),
    ErrorCode(7, "REQUEST_TIMED_OUT", True, False),
    ErrorCode(8, "BROKER_NOT_AVAILABLE", True, True),
    ErrorCode(9, "REPLICA_NOT_AVAILABLE", True, True),
    ErrorCode(10, "MESSAGE_TOO_LARGE", False, False),
    ErrorCode(12, "OFFSET_METADATA_TOO_LARGE", False, False),
    ErrorCode(13, "NETWORK_EXCEPTION", True, True),
    ErrorCode(14, "COORDINATOR_LOAD_IN_PROGRESS", True, False),
    ErrorCode(15, "COORDINATOR_NOT_AVAILABLE", True, True),
    ErrorCode(16, "NOT_COORDINATOR", True, True),
    ErrorCode(17, "INVALID_TOPIC_EXCEPTION", False, False),
    ErrorCode(18, "RECORD_LIST_TOO_LARGE", False, False),
    ErrorCode(19, "NOT_ENOUGH_REPLICAS", True, True),
    ErrorCode(20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", True, True),
    ErrorCode(21, "INVALID_REQUIRED_ACKS", False, False),
    ErrorCode(22, "ILLEGAL_GENERATION", False, False),
    ErrorCode(23, "INCONSISTENT_GROUP_PROTOCOL", False, False),
    ErrorCode(24, "INVALID_GROUP_ID", False, False),
    ErrorCode(25, "UNKNOWN_MEMBER_ID", False, False),
    ErrorCode(26, "INVALID_SESSION_TIMEOUT", False, False),
    ErrorCode(27, "REBALANCE_IN_PROGRESS", False, False),
    ErrorCode(28, "INVALID_COMMIT_OFFSET_SIZE", False, False),
    ErrorCode(29, "TOPIC_AUTHORIZATION_FAILED", False, False),
    ErrorCode(30, "GROUP_AUTHORIZATION_FAILED", False, False),
    ErrorCode(31, "CLUSTER_AUTHORIZATION_FAILED", False, False),
    ErrorCode(32, "INVALID_TIMESTAMP", False, False),
    ErrorCode(35, "UNSUPPORTED_VERSION", False, False),
    ErrorCode(36, "TOPIC_ALREADY_EXISTS", False, False),
    ErrorCode(37, "INVALID_PARTITIONS", False, False),
    ErrorCode(38, "INVALID_REPLICATION_FACTOR", False, False),
    ErrorCode(40, "INVALID_CONFIG", False, False),
    ErrorCode(41, "NOT_CONTROLLER", True, True),
    ErrorCode(42, "INVALID_REQUEST", False, False),
    ErrorCode(43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", False, False),
    ErrorCode(44, "POLICY_VIOLATION", False, False),
    ErrorCode(45, "OUT_OF_ORDER_SEQUENCE_NUMBER", False, False),
    ErrorCode(46, "DUPLICATE_SEQUENCE_NUMBER", False, False),
    ErrorCode(47, "INVALID_PRODUCER_EPOCH", False, False),
    ErrorCode(48, "INVALID_TXN_STATE", False, False),
    ErrorCode(49, "INVALID_PRODUCER_ID_MAPPING", False, False),
    # An earlier transaction of the same producer is still being ended.
    ErrorCode(51, "CONCURRENT_TRANSACTIONS", True, False),
    ErrorCode(53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", False, False),
    # The cluster has no authorizer, so it has no ACLs.
    ErrorCode(54, "SECURITY_DISABLED", False, False),
    # A disk of the leader failed; leadership moves elsewhere (KIP-112).
    ErrorCode(56, "KAFKA_STORAGE_ERROR", True, True),
    ErrorCode(59, "UNKNOWN_PRODUCER_ID", False, False),
    ErrorCode(68, "NON_EMPTY_GROUP", False, False),
    ErrorCode(69, "GROUP_ID_NOT_FOUND", False, False),
    # The broker has dropped the fetch session: the next request opens another (KIP-227).
    ErrorCode(70, "FETCH_SESSION_ID_NOT_FOUND", True, False),
    ErrorCode(71, "INVALID_FETCH_SESSION_EPOCH", True, False),
    ErrorCode(72, "LISTENER_NOT_FOUND", True, True),
    # We or the broker missed an election: metadata shows who leads now (KIP-320).
    ErrorCode(74, "FENCED_LEADER_EPOCH", True, True),
    ErrorCode(75, "UNKNOWN_LEADER_EPOCH", True, True),
    ErrorCode(76, "UNSUPPORTED_COMPRESSION_TYPE", False, False),
    # A new leader does not know its high watermark yet (KIP-207).
    ErrorCode(78, "OFFSET_NOT_AVAILABLE", True, False),
    ErrorCode(79, "MEMBER_ID_REQUIRED", False, False),
    ErrorCode(80, "PREFERRED_LEADER_NOT_AVAILABLE", True, True),
    ErrorCode(81, "GROUP_MAX_SIZE_REACHED", False, False),
    ErrorCode(82, "FENCED_INSTANCE_ID", False, False),
    ErrorCode(83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", True, True),
    ErrorCode(87, "INVALID_RECORD", False, False),
    # A transaction of the group is open, and would change its offsets (KIP-447).
    ErrorCode(88, "UNSTABLE_OFFSET_COMMIT", True, False),
    # The quota for creating, deleting and growing topics (KIP-599).
    ErrorCode(89, "THROTTLING_QUOTA_EXCEEDED", True, False),
    ErrorCode(90, "PRODUCER_FENCED", False, False),
    # A topic was recreated, or the broker does not know it yet (KIP-516).
    ErrorCode(100, "UNKNOWN_TOPIC_ID", True, True),
    ErrorCode(103, "INCONSISTENT_TOPIC_ID", True, True),
    ErrorCode(106, "FETCH_SESSION_TOPIC_ID_ERROR", True, True),
    ErrorCode(113, "STALE_MEMBER_EPOCH", False, False),
)

BY_CODE = {row.code: row for row in ROWS}

UNKNOWN_SERVER_ERROR = -1
OFFSET_OUT_OF_RANGE = 1
UNKNOWN_TOPIC_OR_PARTITION = 3
LEADER_NOT_AVAILABLE = 5
MESSAGE_TOO_LARGE = 10
RECORD_LIST_TOO_LARGE = 18
ILLEGAL_GENERATION = 22
INCONSISTENT_GROUP_PROTOCOL = 23
UNKNOWN_MEMBER_ID = 25
REBALANCE_IN_PROGRESS = 27
TOPIC_AUTHORIZATION_FAILED = 29
GROUP_AUTHORIZATION_FAILED = 30
CLUSTER_AUTHORIZATION_FAILED = 31
INVALID_TIMESTAMP = 32
INVALID_REPLICATION_FACTOR = 38
INVALID_CONFIG = 40
INVALID_REQUEST = 42
UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
OUT_OF_ORDER_SEQUENCE_NUMBER = 45
DUPLICATE_SEQUENCE_NUMBER = 46
INVALID_PRODUCER_EPOCH = 47
INVALID_PRODUCER_ID_MAPPING = 49
CONCURRENT_TRANSACTIONS = 51
TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
SECURITY_DISABLED = 54
UNKNOWN_PRODUCER_ID = 59
GROUP_ID_NOT_FOUND = 69
FETCH_SESSION_ID_NOT_FOUND = 70
INVALID_FETCH_SESSION_EPOCH = 71
MEMBER_ID_REQUIRED = 79
INVALID_RECORD = 87
PRODUCER_FENCED = 90


def error_code(code: int) -> ErrorCode:
    """The row of `code`; a code that the table lacks counts as final."""
    return BY_CODE.get(code) or ErrorCode(code, f"ERROR_{code}", False, False)


def broker_error(what: str, code: int, detail: str | None = None) -> BrokerError:
    """An error with what was asked, the code's name, and the broker's own text."""
    row = error_code(code)
    text = f"{what}: {row.name}" + (f" ({detail})" if detail else "")
    return BrokerError(text, code, row.retriable)
