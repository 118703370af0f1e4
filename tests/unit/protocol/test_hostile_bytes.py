"""What bodies may claim and do not hold (faults H6 to H8): refused, and nothing allocated for the claim."""

import tracemalloc

import pytest

from partita.protocol.messages.api_versions import ApiVersionsResponse
from partita.protocol.messages.fetch import FetchRequest
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.join_group import JoinGroupRequest
from partita.protocol.messages.metadata import MetadataRequest
from partita.protocol.messages.offset_fetch import OffsetFetchRequest
from partita.protocol.messages.produce import ProduceRequest
from partita.protocol.primitives import MalformedRequest, Message, Reader
from partita.protocol.reader import ELEMENTS_MAX

HUGE = b"\x7f\xff\xff\xff"
HUGE_COMPACT = b"\xff\xff\xff\xff\x0f"
MILLION_COMPACT = b"\x81\x80\x40"


def refused(cls: type[Message], version: int, raw: bytes) -> str:
    """Decoding must fail, having taken little memory; return the reason."""
    tracemalloc.start()
    try:
        with pytest.raises(MalformedRequest) as caught:
            cls.decode(raw, version)
        assert tracemalloc.get_traced_memory()[1] < 40_000 + 200 * len(raw)
    finally:
        tracemalloc.stop()
    return str(caught.value)


@pytest.mark.parametrize(
    ("cls", "version", "raw"),
    [
        pytest.param(MetadataRequest, 0, HUGE, id="array of 2^31-1"),
        pytest.param(MetadataRequest, 0, b"\xff\xff\xff\xff", id="null where null is not allowed"),
        pytest.param(MetadataRequest, 4, b"\xff\xff\xff\xfe\0", id="array of -2"),
        pytest.param(MetadataRequest, 9, HUGE_COMPACT + b"\0\0\0\0", id="compact array of 2^32-2"),
        pytest.param(FetchRequest, 4, bytes(17) + HUGE, id="topics of 2^31-1"),
        pytest.param(FetchRequest, 4, bytes(17) + b"\0\0\0\x01\0\x01t" + HUGE, id="partitions of 2^31-1"),
        pytest.param(OffsetFetchRequest, 1, b"\0\x01g\0\0\0\x01\0\x01t\x3f\xff\xff\xff" + bytes(9), id="2^30 int32s"),
        pytest.param(OffsetFetchRequest, 8, MILLION_COMPACT + b"\x02g" + MILLION_COMPACT + b"\x02t", id="nested 2^20"),
        pytest.param(ProduceRequest, 3, b"\xff\xff\0\0\0\0\0\0" + HUGE, id="produce topics"),
        pytest.param(HeartbeatRequest, 0, b"\x7f\xffg", id="string longer than the frame"),
        pytest.param(HeartbeatRequest, 0, b"\xff\xff", id="null string where null is not allowed"),
        pytest.param(HeartbeatRequest, 4, b"\0", id="compact null string where null is not allowed"),
        pytest.param(HeartbeatRequest, 4, HUGE_COMPACT, id="compact string of 2^32-2"),
        pytest.param(HeartbeatRequest, 4, b"\x80\x80\x80\x80\x80\x00" + bytes(20), id="varint of six bytes"),
        pytest.param(HeartbeatRequest, 4, b"\xff\xff\xff\xff\x7f" + bytes(20), id="varint beyond 32 bits"),
        pytest.param(JoinGroupRequest, 0, b"\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\x01p" + HUGE, id="bytes of 2^31-1"),
    ],
)
def test_a_claim_the_bytes_do_not_keep_is_refused(cls: type[Message], version: int, raw: bytes) -> None:
    refused(cls, version, raw)


HEARTBEAT_V4 = HeartbeatRequest(group_id="g", member_id="m").encode(4)[:-1]


@pytest.mark.parametrize(
    ("tags", "reason"),
    [
        pytest.param(b"\x02\x05\0\x05\0", "tag 5 after tag 5", id="the same tag twice"),
        pytest.param(b"\x02\x05\0\x04\0", "tag 4 after tag 5", id="descending tags"),
        pytest.param(HUGE_COMPACT, "cut short", id="2^32-1 tags"),
        pytest.param(b"\x01\x05" + HUGE_COMPACT, "tagged field of", id="a field of 2^32-1 bytes"),
        pytest.param(b"\x01\x05\x02a", "tagged field of 2 bytes", id="a field beyond the frame"),
        pytest.param(b"\0\0", "left over", id="a byte after the tags"),
    ],
)
def test_tagged_fields_that_lie_are_refused(tags: bytes, reason: str) -> None:
    assert reason in refused(HeartbeatRequest, 4, HEARTBEAT_V4 + tags)


def test_unknown_tagged_fields_are_skipped() -> None:
    assert HeartbeatRequest.decode(HEARTBEAT_V4 + b"\x02\x05\x02ab\x80\x01\0", 4).group_id == "g"


def test_a_known_tagged_field_must_end_where_it_says() -> None:
    good = ApiVersionsResponse(finalized_features_epoch=7).encode(3)
    assert good.endswith(b"\x01\x01\x08" + (7).to_bytes(8, "big"))
    too_long = good[:-9] + b"\x09" + good[-8:] + b"\0"
    assert "tagged field ends at" in refused(ApiVersionsResponse, 3, too_long)


def test_a_message_of_more_elements_than_any_honest_one_is_refused() -> None:
    groups = ELEMENTS_MAX // 4
    raw = b"\0\x01g" + b"\0\0\0\x05" + (b"\0\x01t" + groups.to_bytes(4, "big") + bytes(4 * groups)) * 5
    with pytest.raises(MalformedRequest, match="more array elements than are allowed"):
        OffsetFetchRequest.decode(raw, 1)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"a\0b", "a\0b"),
        (b"\xc3\x28", "\ufffd("),
        (b"a\xff", "a\ufffd"),
        (b"\xed\xa0\x80", "\ufffd"),
        (b"\xf0\x9f\x98\x80", "\U0001f600"),
    ],
)
def test_strings_are_taken_as_java_takes_them(raw: bytes, text: str) -> None:
    assert Reader(bytes([0, len(raw)]) + raw).string() == text
    assert Reader(memoryview(bytes([len(raw) + 1]) + raw)).compact_string() == text


def test_the_longest_string_is_accepted_and_a_longer_one_refused() -> None:
    longest = b"x" * 32767
    assert Reader(b"\x7f\xff" + longest).string() == longest.decode()
    assert Reader(b"\x80\x80\x02" + longest).compact_string() == longest.decode()
    with pytest.raises(MalformedRequest, match="string of 32768 bytes"):
        Reader(b"\x81\x80\x02" + longest + b"x").compact_string()
