"""Kafka's frames over a blocking socket, for design 2's members and coordinators."""

from __future__ import annotations

import socket
from struct import Struct
from typing import TypeVar

from partita.protocol.api_table import APIS
from partita.protocol.framing import encode_request, read_response_header
from partita.protocol.primitives import Message, Request

R = TypeVar("R", bound=Message)
_LENGTH = Struct(">i")


class Connection:
    """One connection of a client: a request at a time. Every call may raise OSError."""

    def __init__(self, address: str, client_id: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)))
        self._client_id = client_id
        self._correlation = 0

    def ask(self, request: Request[R], version: int, *, within_s: float) -> R:
        """The answer to one request."""
        self._correlation += 1
        self._socket.settimeout(within_s)
        self._socket.sendall(
            b"".join(encode_request(request.API_KEY, version, self._correlation, self._client_id, request))
        )
        _, reader = read_response_header(request.API_KEY, version, receive(self._socket))
        answer: R = APIS[request.API_KEY].response.read(reader, version)  # type: ignore[assignment]  # of this request
        return answer

    def close(self) -> None:
        """End the connection."""
        self._socket.close()


def receive(source: socket.socket) -> bytes:
    """The next frame, without its length. Raises ConnectionError at the end."""
    return _exactly(source, _LENGTH.unpack(_exactly(source, 4))[0])


def _exactly(source: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = source.recv(size - len(data))
        if not part:
            raise ConnectionError("the other side has closed the connection")
        data += part
    return data
