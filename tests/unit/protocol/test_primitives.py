import pytest

from partita.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from partita.protocol.messages.produce import PartitionProduceData
from partita.protocol.primitives import Reader, Writer


@pytest.mark.parametrize(
    ("value", "raw"),
    [
        (0, b"\0"),
        (127, b"\x7f"),
        (128, b"\x80\x01"),
        (300, b"\xac\x02"),
        (2**28, b"\x80\x80\x80\x80\x01"),
        (2**32 - 1, b"\xff\xff\xff\xff\x0f"),
    ],
)
def test_an_unsigned_varint_is_written_and_read(value: int, raw: bytes) -> None:
    writer = Writer()
    writer.uvarint(value)
    assert writer.getvalue() == raw
    assert Reader(raw).uvarint() == value


@pytest.mark.parametrize("kind", ["int8", "int16", "uint16", "int32", "int64"])
def test_integers_at_their_bounds(kind: str) -> None:
    bits = int(kind.strip("uint"))
    low, high = (0, 2**bits - 1) if kind[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for value in (low, -1 if low else 0, 0, 1, high):
        writer = Writer()
        getattr(writer, kind)(value)
        reader = Reader(writer.getvalue())
        assert getattr(reader, kind)() == value
        reader.finish()


def test_a_float_comes_out_as_it_went_in() -> None:
    writer = Writer()
    writer.float64(-0.5)
    assert Reader(writer.getvalue()).float64() == -0.5


def test_a_writer_refuses_what_the_wire_cannot_say() -> None:
    with pytest.raises(ValueError, match="16 bytes, not 3"):
        Writer().uuid(b"abc")
    for method in ("string", "compact_string"):
        with pytest.raises(ValueError, match="string of 32768 bytes"):
            getattr(Writer(), method)("x" * 32768)


def test_null_where_a_version_cannot_say_null_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="topics cannot be null in this version"):
        MetadataRequest(topics=None).encode(0)
    with pytest.raises(ValueError, match="name cannot be null in this version"):
        MetadataRequest(topics=[MetadataRequestTopic(name=None)]).encode(9)


def test_messages_are_equal_by_class_and_fields_and_cannot_be_hashed() -> None:
    one = HeartbeatRequest(group_id="g", generation_id=1)
    assert one == HeartbeatRequest(group_id="g", generation_id=1)
    assert one != HeartbeatRequest(group_id="g", generation_id=2)
    assert HeartbeatResponse() != HeartbeatRequest()
    with pytest.raises(TypeError):
        hash(one)


def test_a_message_shows_its_fields_and_only_the_size_of_long_bytes() -> None:
    assert repr(HeartbeatResponse(error_code=27)) == "HeartbeatResponse(throttle_time_ms=0, error_code=27)"
    assert repr(PartitionProduceData(records=b"ab")) == "PartitionProduceData(index=0, records=b'ab')"
    assert repr(PartitionProduceData(records=memoryview(bytes(99)))).endswith("records=<99 bytes>)")


def test_new_messages_share_no_lists() -> None:
    topics = MetadataRequest().topics
    assert topics is not None
    topics.append(MetadataRequestTopic())
    assert MetadataRequest().topics == []
