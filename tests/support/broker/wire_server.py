"""A broker of a few lines for tests of connections: answers whatever the test says, over a real socket."""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import Callable
from importlib import import_module
from typing import Any

from partita.protocol import framing
from partita.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse

MODULES = {
    0: "produce", 1: "fetch", 2: "list_offsets", 3: "metadata", 8: "offset_commit", 9: "offset_fetch",
    10: "find_coordinator", 11: "join_group", 12: "heartbeat", 13: "leave_group", 14: "sync_group",
    17: "sasl_handshake", 18: "api_versions",
    36: "sasl_authenticate",
}  # fmt: skip


def request_class(api_key: int) -> Any:
    name = MODULES[api_key]
    words = "".join(word.capitalize() for word in name.split("_"))
    return getattr(import_module(f"partita.protocol.messages.{name}"), f"{words}Request")


def all_versions() -> ApiVersionsResponse:
    keys = [ApiVersion(api_key=k, min_version=c.MIN_VERSION, max_version=c.MAX_VERSION) for k, c in
            ((key, request_class(key)) for key in MODULES)]  # fmt: skip
    return ApiVersionsResponse(api_keys=keys)


CLOSE = object()
"""An answer that closes the connection instead."""


class WireServer:
    """`answer(api_key, version, request)` returns a message, raw bytes, None for silence, or CLOSE."""

    def __init__(self, answer: Callable[[int, int, Any], Any], tls: ssl.SSLContext | None = None) -> None:
        self.answer = answer
        self.tls = tls
        self.requests: list[tuple[int, int, Any]] = []
        self.connections = 0
        self.writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> WireServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.drop_all()

    def drop_all(self) -> None:
        for writer in self.writers:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                key, version, correlation_id, _, body = framing.read_request_header(await reader.readexactly(size))
                request = request_class(key).read(body, version)
                self.requests.append((key, version, request))
                reply = all_versions() if key == 18 else None
                told = self.answer(key, version, request)
                reply = told if told is not None else reply
                if reply is CLOSE:
                    return
                if isinstance(reply, bytes):
                    writer.write(reply)
                elif reply is not None:
                    writer.writelines(framing.encode_response(key, version, correlation_id, reply))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
