"""Golden bytes of MirrorMaker 2's records."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.mirror.records import (
    Checkpoint,
    Heartbeat,
    OffsetKey,
    OffsetSync,
    RecordError,
    UnsupportedRecordError,
    decode_offset_key,
    decode_offset_value,
    encode_checkpoint_offset_key,
    encode_heartbeat_offset_key,
    encode_offset_key,
    encode_offset_value,
)

Record = Heartbeat | Checkpoint | OffsetSync

GOLDEN = [
    pytest.param(
        OffsetSync("t", 3, 100, 200),
        "0001 74 00000003",
        "0000000000000064 00000000000000c8",
        id="offset sync",
    ),
    pytest.param(
        Checkpoint("g", "A.t", 3, 100, 200),
        "0001 67 0003 412e74 00000003",
        "0000 0000000000000064 00000000000000c8 0000",
        id="checkpoint",
    ),
    pytest.param(
        Checkpoint("g", "A.t", 3, 100, 200, "\u00e9"),
        "0001 67 0003 412e74 00000003",
        "0000 0000000000000064 00000000000000c8 0002 c3a9",
        id="checkpoint with metadata",
    ),
    pytest.param(
        Heartbeat("A", "B", 1_700_000_000_000),
        "0001 41 0001 42",
        "0000 0000018bcfe56800",
        id="heartbeat",
    ),
]


@pytest.mark.parametrize(("record", "key", "value"), GOLDEN)
def test_records_are_written_and_read_as_golden_bytes(record: Record, key: str, value: str) -> None:
    assert record.encode_key() == bytes.fromhex(key)
    assert record.encode_value() == bytes.fromhex(value)
    assert type(record).decode(bytes.fromhex(key), bytes.fromhex(value)) == record


@pytest.mark.parametrize(("record", "key", "value"), GOLDEN)
def test_records_cut_short_are_rejected_at_every_length(
    record: Record, key: str, value: str
) -> None:
    whole_key, whole_value = bytes.fromhex(key), bytes.fromhex(value)
    for length in range(len(whole_key)):
        with pytest.raises(RecordError, match=r"read .* key"):
            type(record).decode(whole_key[:length], whole_value)
    for length in range(len(whole_value)):
        with pytest.raises(RecordError, match=r"read .* value"):
            type(record).decode(whole_key, whole_value[:length])


@pytest.mark.parametrize(("record", "key", "value"), GOLDEN)
def test_bytes_after_the_last_field_are_ignored(record: Record, key: str, value: str) -> None:
    longer = bytes.fromhex(key) + b"x", bytes.fromhex(value) + b"x"
    assert type(record).decode(*longer) == record


@pytest.mark.parametrize(
    ("record", "key", "value"), [case for case in GOLDEN if case.id != "offset sync"]
)
def test_other_versions_are_rejected(record: Record, key: str, value: str) -> None:
    later = b"\x00\x01" + bytes.fromhex(value)[2:]
    with pytest.raises(UnsupportedRecordError, match="version 1 is not supported") as caught:
        type(record).decode(bytes.fromhex(key), later)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize(
    "key",
    [
        pytest.param("ffff 00000003", id="null string"),
        pytest.param("0001 ff 00000003", id="not UTF-8"),
    ],
)
def test_strings_that_are_none_are_rejected(key: str) -> None:
    with pytest.raises(RecordError, match="read offset sync key"):
        OffsetSync.decode(bytes.fromhex(key), bytes(16))


def test_strings_of_more_than_an_int16_of_bytes_are_rejected() -> None:
    assert OffsetSync("t" * 32767, 0, 0, 0).encode_key()[:2] == b"\x7f\xff"
    with pytest.raises(RecordError, match="has 32768 bytes, 32767 are allowed"):
        OffsetSync("t" * 32768, 0, 0, 0).encode_key()


# Written by Jackson 2.21 (ObjectMapper.writeValueAsBytes) from the string of the code points
# 0 to 0x21, then / \ DEL, U+0080, U+00E9, U+20AC, U+2028, U+FFFF, U+1F600 and <>&'.
JACKSON_INPUT = "".join(map(chr, range(0x22))) + "/\\\x7f\x80\u00e9\u20ac\u2028\uffff\U0001f600<>&'"
JACKSON_OUTPUT = bytes.fromhex(
    "225c75303030305c75303030315c75303030325c75303030335c75303030345c75303030355c75303030365c7530"
    "3030375c625c745c6e5c75303030425c665c725c75303030455c75303030465c75303031305c75303031315c7530"
    "3031325c75303031335c75303031345c75303031355c75303031365c75303031375c75303031385c75303031395c"
    "75303031415c75303031425c75303031435c75303031445c75303031455c753030314620212f5c5c7fc280c3a9e2"
    "82ace280a8efbfbf5c75443833445c75444530303c3e262722"
)

OFFSET_KEYS = [
    pytest.param(
        OffsetKey("MirrorSourceConnector", "A", "t", 3),
        b'["MirrorSourceConnector",{"cluster":"A","partition":3,"topic":"t"}]',
        id="plain",
    ),
    pytest.param(
        OffsetKey('my "mirror"', "us/west", "a.b_c-d", 0),
        b'["my \\"mirror\\"",{"cluster":"us/west","partition":0,"topic":"a.b_c-d"}]',
        id="quotes and slash",
    ),
    pytest.param(
        OffsetKey(JACKSON_INPUT, "A", "t", 24),
        b"[" + JACKSON_OUTPUT + b',{"cluster":"A","partition":24,"topic":"t"}]',
        id="all that Jackson escapes",
    ),
]


@pytest.mark.parametrize(("key", "data"), OFFSET_KEYS)
def test_offset_keys_are_written_and_read_as_jackson_does(key: OffsetKey, data: bytes) -> None:
    assert encode_offset_key(key.connector, key.cluster, key.topic, key.partition) == data
    assert decode_offset_key(data) == key


@pytest.mark.parametrize(
    ("name", "written"),
    [
        pytest.param("MirrorHeartbeatConnector", b'"MirrorHeartbeatConnector"', id="plain"),
        pytest.param(JACKSON_INPUT, JACKSON_OUTPUT, id="all that Jackson escapes"),
    ],
)
def test_keys_of_heartbeats_and_checkpoints_are_those_of_java(name: str, written: bytes) -> None:
    beat = encode_heartbeat_offset_key(name, "A", "B")
    assert beat == b"[" + written + b',{"sourceClusterAlias":"A","targetClusterAlias":"B"}]'
    checkpoint = encode_checkpoint_offset_key(name, 'my "group"', "A.t", 3)
    members = b'{"partition":3,"topic":"A.t","group":"my \\"group\\""}'
    assert checkpoint == b"[" + written + b"," + members + b"]"
    assert decode_offset_key(beat) is None
    assert decode_offset_key(checkpoint) is None


@pytest.mark.parametrize(
    "data",
    [
        b'["c",{"topic":"t","partition":3,"cluster":"A"}]',
        b' [ "c" , { "partition" : 3 , "cluster" : "\\u0041" , "topic" : "t" } ] ',
    ],
    ids=["other order", "other spelling"],
)
def test_offset_keys_are_read_in_any_order_and_spelling(data: bytes) -> None:
    assert decode_offset_key(data) == OffsetKey("c", "A", "t", 3)


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"",
        b"\xff\xfe\xfd",
        b"not json",
        b"{}",
        b"[]",
        b'["c"]',
        b'["c",null]',
        b'["c",{}]',
        b'[1,{"cluster":"A","partition":3,"topic":"t"}]',
        b'["c",{"cluster":"A","partition":3}]',
        b'["c",{"cluster":"A","partition":"3","topic":"t"}]',
        b'["c",{"cluster":"A","partition":true,"topic":"t"}]',
        b'["c",{"cluster":"A","partition":3.0,"topic":"t"}]',
        b'["c",{"cluster":null,"partition":3,"topic":"t"}]',
        b'["c",{"cluster":"A","partition":3,"topic":"t","more":1}]',
        b'["c",{"cluster":"A","partition":3,"topic":"t"},1]',
        b'["MirrorCheckpointConnector",{"partition":0,"topic":"A.t","group":"g"}]',
        b'["MirrorHeartbeatConnector",{"sourceClusterAlias":"A","targetClusterAlias":"B"}]',
        b'["jdbc",{"protocol":"1","table":"t"}]',
    ],
)
def test_keys_of_other_connectors_are_not_offset_keys(data: bytes | None) -> None:
    assert decode_offset_key(data) is None


@pytest.mark.parametrize(
    ("data", "last_offset"),
    [
        (b'{"offset":0}', 0),
        (b'{"offset":9223372036854775807}', 2**63 - 1),
    ],
)
def test_offset_values_are_written_and_read(data: bytes, last_offset: int) -> None:
    assert encode_offset_value(last_offset) == data
    assert decode_offset_value(data) == last_offset


@pytest.mark.parametrize(
    "data",
    [None, b"null", b"{}", b'{"offset":null}', b'{"offset":-1}'],
    ids=["tombstone", "null", "no offset", "null offset", "negative"],
)
def test_values_without_an_offset_are_no_position(data: bytes | None) -> None:
    assert decode_offset_value(data) is None


@pytest.mark.parametrize(
    "data", [b"", b"\xff", b"[]", b"12", b'{"offset":"12"}', b'{"offset":1.5}', b'{"offset":true}']
)
def test_values_that_connect_never_writes_are_rejected(data: bytes) -> None:
    with pytest.raises(RecordError, match="position from the offsets topic"):
        decode_offset_value(data)


int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
texts = st.text(max_size=20)
repeatable = settings(derandomize=True, deadline=None)


@repeatable
@given(
    st.one_of(
        st.builds(Heartbeat, texts, texts, int64s),
        st.builds(Checkpoint, texts, texts, int32s, int64s, int64s, texts),
        st.builds(OffsetSync, texts, int32s, int64s, int64s),
    )
)
def test_every_record_reads_back(record: Record) -> None:
    assert type(record).decode(record.encode_key(), record.encode_value()) == record


@repeatable
@given(texts, texts, texts, int32s)
def test_every_offset_key_reads_back(
    connector: str, cluster: str, topic: str, partition: int
) -> None:
    data = encode_offset_key(connector, cluster, topic, partition)
    assert decode_offset_key(data) == OffsetKey(connector, cluster, topic, partition)
