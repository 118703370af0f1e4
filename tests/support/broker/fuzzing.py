"""Requests that are nearly right: random messages of every API and version, damaged in their fields or their bytes.

`Fuzzer.run` sends them to a broker, one at a time, and says what it did wrong: a request that is neither answered nor
closed, an answer that cannot be read or belongs to another request. Everything follows from the seed. (Faults 6.4.)
"""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass, field
from random import Random
from types import ModuleType
from typing import Any

from partita.broker.api.apis import SERVED, ServedApi
from partita.protocol.api_table import APIS
from partita.protocol.framing import encode_request, read_request_header, read_response_header
from partita.protocol.messages.produce import ProduceRequest
from partita.protocol.primitives import MalformedRequest
from partita.protocol.schema_file import Field
from partita.records.builder import build_batch
from support.frames import FrameCutter
from support.vectors.schemas import BITS, described, in_version

REQUESTS = {message.api[0]: message for message in described() if message.api and message.schema.kind == "request"}
PRODUCE, FETCH, JOIN_GROUP, SYNC_GROUP = 0, 1, 11, 14
MAY_WAIT = frozenset({PRODUCE, FETCH, JOIN_GROUP, SYNC_GROUP})
"""Requests whose answer may be far away, or never due (acks=0)."""
PATIENCE_SECONDS, SHORT_PATIENCE_SECONDS = 60.0, 0.02
TEXTS = ["", "t", "g", "range", "consumer", "cleanup.policy", "é\x00\x1b[2J", "../t", "x" * 250, "y" * 32_767]
NASTY = [
    b"\xff\xff\xff\xff\x0f",
    b"\x7f\xff\xff\xff",
    b"\x80\x80\x80\x80\x80\x01",
    b"\xff" * 9,
    b"\0",
    b"\x01",
    b"\x80",
]
BATCH = build_batch([(0, b"k", b"v", ())] * 3)


@dataclass
class Findings:
    """What was sent, and what was wrong about the broker's reactions."""

    requests: int = 0
    answered: int = 0
    closed: int = 0
    abandoned: int = 0
    wrong: list[str] = field(default_factory=list)


class Fuzzer:
    """Random requests to the broker at a port."""

    def __init__(self, port: int, seed: int) -> None:
        self._port = port
        self._random = Random(seed)
        self._seed = seed
        self._peer: socket.socket | None = None
        self.found = Findings()

    def run(self, requests: int | None = None, seconds: float | None = None) -> Findings:
        """Send so many requests, or for so long; return what was found."""
        end = None if seconds is None else time.monotonic() + seconds
        while (requests is None or self.found.requests < requests) and (end is None or time.monotonic() < end):
            self._one()
        self._drop()
        return self.found

    def _one(self) -> None:
        api = self._random.choice(list(SERVED.values()))
        version = self._random.randint(api.min_version, api.max_version)
        number = self.found.requests = self.found.requests + 1
        frame = self._frame(api, version, number)
        outcome = self._sent(api, version, number, frame)
        if outcome is not None:
            self.found.wrong.append(
                f"seed {self._seed}, request {number}, {api.name} v{version}: {outcome}; {frame[:400].hex()}"
            )

    # -- what is sent ----------------------------------------------------------------------------------------------

    def _frame(self, api: ServedApi, version: int, number: int) -> bytes:
        """A request, its length in front. The parts that say whose answer it is are left alone."""
        message = REQUESTS[api.key]
        while True:
            built = self._struct(message.module, message.schema.name, message.schema.fields, version)
            try:
                whole = b"".join(encode_request(api.key, version, number, self._random.choice([None, "fuzz"]), built))[
                    4:
                ]
                break
            except ValueError:
                continue  # too long a text, or a null that this version cannot say
        body = self._damaged(whole[8:]) if self._random.random() < 0.6 else whole[8:]
        return (8 + len(body)).to_bytes(4, "big") + whole[:8] + body

    def _damaged(self, body: bytes) -> bytes:
        for _ in range(self._random.randint(1, 3)):
            at = self._random.randint(0, len(body))
            match self._random.randrange(5):
                case 0:
                    body = body[:at]
                case 1:
                    body = body[:at] + self._random.choice(NASTY) + body[at + self._random.randint(0, 6) :]
                case 2:
                    body = body[:at] + self._random.randbytes(self._random.randint(1, 9)) + body[at:]
                case 3:
                    body = body[:at] + body[at + self._random.randint(1, 4) :]
                case 4 if at < len(body):
                    body = body[:at] + bytes([body[at] ^ (1 << self._random.randrange(8))]) + body[at + 1 :]
        return body

    def _struct(self, module: ModuleType, name: str, fields: list[Field], version: int) -> Any:
        given = {f.name: self._value(module, f, version) for f in fields if in_version(f, version)}
        return getattr(module, name)(**given)

    def _value(self, module: ModuleType, described_field: Field, version: int) -> Any:
        f = described_field
        if f.nullable.first <= version <= f.nullable.last and self._random.random() < 0.1:
            return None
        if f.is_array:
            count = self._random.choice([0, 1, 1, 1, 2, 3])
            return [self._single(module, f, version) for _ in range(count)]
        return self._single(module, f, version)

    def _single(self, module: ModuleType, f: Field, version: int) -> Any:
        if f.is_struct:
            return self._struct(module, f.type, f.fields, version)
        if f.type in BITS:
            top = 1 << (BITS[f.type] - 1)
            if f.name.endswith("_ms") and self._random.random() < 0.9:
                return self._random.choice([-1, 0, 1, 6000, 30_000]) % top if top > 30_000 else 0
            return self._random.choice(
                [0, 0, 1, 1, 2, 3, -1, -2, 100, top - 1, -top, self._random.randrange(-top, top)]
            )
        match f.type:
            case "boolean":
                return self._random.random() < 0.5
            case "string":
                weights = [3, 20, 20, 5, 5, 3, 2, 2, 1, 0.2]
                return self._random.choices(TEXTS, weights)[0]
            case "uuid":
                return self._random.choice([bytes(16), b"\x01" * 16, self._random.randbytes(16)])
            case "float64":
                return self._random.choice([0.0, -1.5, float("inf"), float("nan")])
            case "uint16":
                return self._random.randrange(1 << 16)
            case "records":
                return self._random.choice(
                    [b"", BATCH, self._damaged(BATCH), BATCH + BATCH, self._random.randbytes(70)]
                )
        return self._random.choice([b"", b"\0\1", self._random.randbytes(20)])

    # -- what comes back -------------------------------------------------------------------------------------------

    def _sent(self, api: ServedApi, version: int, number: int, frame: bytes) -> str | None:
        """Send it and wait; None if the broker did what it may."""
        if self._peer is None:
            self._peer = socket.create_connection(("127.0.0.1", self._port))
        self._peer.settimeout(SHORT_PATIENCE_SECONDS if api.key in MAY_WAIT else PATIENCE_SECONDS)
        cutter = FrameCutter()
        answers: list[bytes] = []
        try:
            self._peer.sendall(frame)
            while not answers:
                received = self._peer.recv(1 << 16)
                if not received:
                    raise ConnectionResetError
                answers = cutter.feed(received)
        except TimeoutError:
            self._drop()
            self.found.abandoned += 1
            return None if api.key in MAY_WAIT else f"neither answered nor closed within {PATIENCE_SECONDS:g} s"
        except ConnectionError:
            self._drop()
            self.found.closed += 1
            return None if self._may_close(frame, version, api) else "closed, though it can be read"
        self.found.answered += 1
        return _problem(answers, api.key, version, number)

    def _may_close(self, frame: bytes, version: int, api: ServedApi) -> bool:
        """Whether our own codec refuses it, too, or it is a Produce without acks, to refuse which is to close."""
        try:
            reader = read_request_header(frame[4:])[-1]
            reader.allow(api.elements_max)
            request = api.request.read(reader, version)
        except MalformedRequest:
            return True
        return isinstance(request, ProduceRequest) and request.acks == 0

    def _drop(self) -> None:
        if self._peer is not None:
            self._peer.close()
            self._peer = None


def _problem(answers: list[bytes], api_key: int, version: int, number: int) -> str | None:
    if len(answers) > 1:
        return f"{len(answers)} answers to one request"
    try:
        correlation_id, reader = read_response_header(api_key, version, answers[0])
        APIS[api_key].response.read(reader, version)
    except MalformedRequest as error:
        return f"an answer that cannot be read: {error}"
    if correlation_id != number:
        return f"the answer says {correlation_id}"
    return f"{reader.remaining()} bytes after the answer" if reader.remaining() else None
