"""A raw client: typed requests out, typed responses in, nothing retried, nothing hidden."""

from __future__ import annotations

import asyncio

from partita.protocol.api_table import APIS
from partita.protocol.framing import encode_request, read_response_header
from partita.protocol.primitives import Message
from support.frames import FrameCutter


class RawClient:
    """One connection. `send` returns a future of the response; it fails when the broker closes the connection."""

    def __init__(self, client_id: str) -> None:
        self.client_id = client_id
        self._waiting: dict[int, tuple[int, int, asyncio.Future[Message]]] = {}
        self._correlation_id = 0

    async def connect(self, bootstrap: str) -> RawClient:
        host, _, port = bootstrap.rpartition(":")
        self._reader, self._writer = await asyncio.open_connection(host, int(port))
        self._task = asyncio.create_task(self._read())
        return self

    def send(self, message: Message, version: int) -> asyncio.Future[Message]:
        self._correlation_id += 1
        api_key: int = message.API_KEY
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[self._correlation_id] = (api_key, version, future)
        self._writer.writelines(encode_request(api_key, version, self._correlation_id, self.client_id, message))
        return future

    @property
    def is_idle(self) -> bool:
        return not self._waiting and not self._task.done()

    async def ask(self, message: Message, version: int) -> Message:
        return await asyncio.wait_for(self.send(message, version), 20)

    async def _read(self) -> None:
        cutter = FrameCutter()
        while data := await self._reader.read(1 << 16):
            for frame in cutter.feed(data):
                correlation_id = int.from_bytes(frame[:4], "big", signed=True)
                api_key, version, future = self._waiting.pop(correlation_id)
                _, body = read_response_header(api_key, version, frame)
                if not future.done():
                    future.set_result(APIS[api_key].response.read(body, version))
        for _, _, future in self._waiting.values():
            if not future.done():
                future.set_exception(ConnectionResetError("closed by the broker"))

    def close(self) -> None:
        self._task.cancel()
        self._writer.close()
        for _, _, future in self._waiting.values():
            future.cancel()
