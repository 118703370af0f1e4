"""Frames and headers: the frame around a message.

A frame is a length (int32) and that many bytes: a header, then the body. Frames are built as chunks, so that
records are sent without being copied. Ours are cut from a stream as the bytes arrive; nothing is allocated
for a length that was only announced. (Kafka: NetworkReceive, RequestHeader, ResponseHeader.)
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError

from partita.protocol.api_table import APIS
from partita.protocol.primitives import Buffer, MalformedRequest, Message, Reader, Writer

FRAME_BYTES_MAX = 100 * 1024 * 1024
"""Kafka's socket.request.max.bytes."""
REQUEST_BYTES_MIN = 8

_LENGTH = Struct(">i")
_REQUEST_START = Struct(">hhih")
_LENGTH_AND_REQUEST_START = Struct(">ihhi")
_RESPONSE_START = Struct(">ii")
_STRANGERS = (
    (b"GET ", "HTTP"), (b"POST", "HTTP"), (b"PUT ", "HTTP"), (b"HEAD", "HTTP"), (b"OPTI", "HTTP"), (b"PRI ", "HTTP/2"),
    (b"HTTP", "an HTTP answer"), (b"\x16\x03", "TLS on a plain port"), (b"\x15\x03", "a TLS alert on a plain port"),
    (b"SSH-", "SSH"), (b"\0\0\0\0", "zeros"),
)  # fmt: skip


def encode_request(
    api_key: int, version: int, correlation_id: int, client_id: str | None, message: Message
) -> list[Buffer]:
    """One request, ready to send: length, header, body."""
    w = Writer()
    w.buf += _LENGTH_AND_REQUEST_START.pack(0, api_key, version, correlation_id)
    w.nullable_string(client_id)
    if version >= APIS[api_key].flexible_from:
        w.uvarint(0)
    message.write(w, version)
    return w.framed()


def encode_response(
    api_key: int, version: int, correlation_id: int, message: Message, writer: Writer | None = None
) -> list[Buffer]:
    """One response, ready to send: length, header, body. `writer`: a new one that is limited, or pauses."""
    w = writer or Writer()
    w.buf += _RESPONSE_START.pack(0, correlation_id)
    if version >= APIS[api_key].tagged_header_from:
        w.uvarint(0)
    message.write(w, version)
    return w.framed()


def read_request_header(frame: Buffer) -> tuple[int, int, int, str | None, Reader]:
    """Return API key, version, correlation id, client id and a reader placed at the body.

    The frame comes without its length. Of an API or a version we do not have, the header is read as far as it is
    the same everywhere; the body is then not to be trusted. Raises MalformedRequest.
    """
    if len(frame) < REQUEST_BYTES_MIN:
        raise MalformedRequest(f"a request header has at least {REQUEST_BYTES_MIN} bytes, not {len(frame)}")
    r = Reader(frame, 10)
    try:
        api_key, version, correlation_id, size = _REQUEST_START.unpack_from(frame)
    except StructError:
        raise MalformedRequest("request header cut short before the client id") from None
    client_id = None
    if size != -1:
        try:
            client_id = str(r.take(size), "utf-8")
        except UnicodeDecodeError as error:
            raise MalformedRequest(f"client id is not UTF-8: {error}") from None
    api = APIS.get(api_key)
    if api is not None and version >= api.flexible_from:
        r.skip_tags()
    return api_key, version, correlation_id, client_id, r


def read_response_header(api_key: int, version: int, frame: Buffer) -> tuple[int, Reader]:
    """Return the correlation id and a reader placed at the body. The frame comes without its length."""
    r = Reader(frame)
    correlation_id = r.int32()
    if version >= APIS[api_key].tagged_header_from:
        r.skip_tags()
    return correlation_id, r


def check_length(length: int, smallest: int = REQUEST_BYTES_MIN, largest: int = FRAME_BYTES_MAX) -> int:
    """Return `length` if a frame may have it; raise MalformedRequest, saying what the sender may be, if not."""
    if smallest <= length <= largest:
        return length
    start = _LENGTH.pack(length)
    stranger = next((name for mark, name in _STRANGERS if start.startswith(mark)), None)
    hint = f"not Kafka, looks like {stranger}" if stranger else f"allowed are {smallest} to {largest}"
    raise MalformedRequest(f"frame length {length}: {hint}")
