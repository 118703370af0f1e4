"""Frames, headers, and what is refused before a body is looked at (faults H1 to H5)."""

import struct
from collections.abc import Iterable

import pytest

from partita.protocol.framing import (
    FRAME_BYTES_MAX,
    check_length,
    encode_request,
    encode_response,
    read_request_header,
    read_response_header,
)
from partita.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from partita.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from partita.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from partita.protocol.primitives import Buffer, MalformedRequest

HEARTBEAT = 12
API_VERSIONS = 18


def frame_of(chunks: Iterable[Buffer]) -> bytes:
    whole = b"".join(chunks)
    assert struct.unpack(">i", whole[:4])[0] == len(whole) - 4
    return whole[4:]


@pytest.mark.parametrize("client_id", ["me", "", None])
@pytest.mark.parametrize("version", [0, 3, 4])
def test_a_request_comes_out_as_it_went_in(version: int, client_id: str | None) -> None:
    request = HeartbeatRequest(group_id="g", generation_id=3, member_id="m")
    frame = frame_of(encode_request(HEARTBEAT, version, 77, client_id, request))
    *header, reader = read_request_header(frame)
    assert header == [HEARTBEAT, version, 77, client_id]
    assert HeartbeatRequest.read(reader, version) == request


def test_the_header_of_a_request_is_read_from_any_kind_of_buffer() -> None:
    frame = frame_of(encode_request(HEARTBEAT, 4, 1, "me", HeartbeatRequest()))
    for form in (bytes, bytearray, memoryview):
        assert read_request_header(form(frame))[:4] == (HEARTBEAT, 4, 1, "me")


@pytest.mark.parametrize("version", [0, 4])
def test_a_response_comes_out_as_it_went_in(version: int) -> None:
    frame = frame_of(encode_response(HEARTBEAT, version, -5, HeartbeatResponse(error_code=27)))
    correlation_id, reader = read_response_header(HEARTBEAT, version, frame)
    assert correlation_id == -5
    assert HeartbeatResponse.read(reader, version) == HeartbeatResponse(error_code=27)


def test_api_versions_answers_with_the_oldest_header_so_that_everyone_can_read_it() -> None:
    frame = frame_of(encode_response(API_VERSIONS, 4, 9, ApiVersionsResponse(error_code=35)))
    assert frame[4:6] == (35).to_bytes(2, "big")


def test_large_records_are_sent_without_a_copy() -> None:
    records = memoryview(bytes(100_000))
    partition = PartitionData(records=records)
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=[partition, partition])])
    chunks = encode_response(1, 12, 1, response)
    assert sum(chunk is records for chunk in chunks) == 2
    correlation_id, reader = read_response_header(1, 12, frame_of(chunks))
    assert correlation_id == 1
    assert FetchResponse.read(reader, 12) == response


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 7, FRAME_BYTES_MAX + 1, 2**31 - 1])
def test_a_length_no_request_has_is_refused(length: int) -> None:
    with pytest.raises(MalformedRequest):
        check_length(length)


@pytest.mark.parametrize("length", [8, 1000, FRAME_BYTES_MAX])
def test_a_length_within_the_bounds_is_returned(length: int) -> None:
    assert check_length(length) == length


@pytest.mark.parametrize(
    ("first_bytes", "stranger"),
    [(b"GET ", "HTTP"), (b"\x16\x03\x01\x02", "TLS on a plain port"), (b"SSH-", "SSH"), (b"\0\0\0\0", "zeros")],
)
def test_a_stranger_is_called_by_name(first_bytes: bytes, stranger: str) -> None:
    with pytest.raises(MalformedRequest, match=f"not Kafka, looks like {stranger}"):
        check_length(struct.unpack(">i", first_bytes)[0])


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\0\x0c\0\x04\0\0\0\x01\0", id="cut short in the length of the client id"),
        pytest.param(b"\0\x0c\0\x04\0\0\0\x01\x7f\xffme", id="client id longer than the frame"),
        pytest.param(b"\0\x0c\0\x04\0\0\0\x01\xff\xfe", id="client id of length -2"),
        pytest.param(b"\0\x0c\0\x04\0\0\0\x01\0\x02\xc3\x28\0", id="client id not UTF-8"),
        pytest.param(b"\0\x0c\0\x04\0\0\0\x01\0\x02me", id="flexible version without tagged fields"),
        pytest.param(b"\0\x0c\0\x04\0\0\0\x01\0\x02me\x01\0\x09", id="tagged field beyond the frame"),
    ],
)
def test_a_broken_header_is_refused(frame: bytes) -> None:
    with pytest.raises(MalformedRequest):
        read_request_header(frame)


def test_of_an_unknown_api_the_header_is_still_told() -> None:
    assert read_request_header(b"\x03\xe8\0\x63\0\0\0\x01\0\x02me")[:4] == (1000, 99, 1, "me")


def test_api_versions_of_the_future_is_recognised() -> None:
    frame = frame_of(encode_request(API_VERSIONS, 4, 3, "new", ApiVersionsRequest()))
    future = frame[:2] + b"\0\x63" + frame[4:]
    assert read_request_header(future)[:4] == (API_VERSIONS, 99, 3, "new")
