"""A schema registry's REST interface on loopback, over a folder; Protobuf messages made without a compiler."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from partita.registry.errors import RegistryError
from partita.registry.folder import FolderRegistry
from partita.registry.schema import Schema


class Service(ThreadingHTTPServer):
    """`answers_with` is a status or an object that every request gets instead, 0 for none; `asked` counts requests."""

    daemon_threads = True

    def __init__(self, registry: FolderRegistry, authorization: str | None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.registry = registry
        self.authorization = authorization
        self.answers_with: int | dict[str, Any] = 0
        self.asked = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """GET /schemas/ids/N, GET and POST /subjects/S/versions."""

    server: Service

    def log_message(self, format: str, *args: Any) -> None:
        return

    def do_GET(self) -> None:
        self._answer(None)

    def do_POST(self) -> None:
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, body: dict[str, Any] | None) -> None:
        service = self.server
        service.asked += 1
        if isinstance(service.answers_with, dict):
            self._send(200, service.answers_with)
        elif service.answers_with:
            self._refuse(service.answers_with, "not today")
        elif service.authorization not in (None, self.headers.get("Authorization")):
            self._refuse(401, "who are you?")
        else:
            try:
                self._send(200, self._found([unquote(part) for part in self.path.split("?")[0].split("/")[1:]], body))
            except RegistryError as error:
                self._refuse(404, str(error))

    def _found(self, path: list[str], body: dict[str, Any] | None) -> dict[str, Any]:
        registry = self.server.registry
        match path:
            case ["schemas", "ids", number]:
                return _told(registry.schema(int(number)))
            case ["subjects", subject, "versions"] if body is not None:
                return {"id": registry.register(subject, Schema(body["schema"], body.get("schemaType", "AVRO")))}
            case ["subjects", subject, "versions", "latest"]:
                schema_id, schema = registry.latest(subject)
                return {"id": schema_id, **_told(schema)}
            case ["subjects", subject, "versions", number]:
                return _told(registry.version(subject, int(number)))
        raise RegistryError("no such path")

    def _refuse(self, status: int, message: str) -> None:
        self._send(status, {"error_code": 100 * status + 1, "message": message})

    def _send(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _told(schema: Schema) -> dict[str, Any]:
    told: dict[str, Any] = {"schema": schema.text}
    return told if schema.type == "AVRO" else {**told, "schemaType": schema.type}


@contextmanager
def registry_service(registry: FolderRegistry, authorization: str | None = None) -> Iterator[Service]:
    """The service, running in a thread of its own."""
    with Service(registry, authorization) as service:
        thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield service
        finally:
            service.shutdown()
            thread.join()


def proto_classes() -> tuple[Any, Any]:
    """Messages Other and Flight.Leg of one file; the second is nested in the file's second type."""
    file = descriptor_pb2.FileDescriptorProto(name="flights.proto", package="flights", syntax="proto3")
    file.message_type.add(name="Other").field.add(name="text", number=1, type=9, label=1)
    leg = file.message_type.add(name="Flight").nested_type.add(name="Leg")
    leg.field.add(name="carrier", number=1, type=9, label=1)
    leg.field.add(name="delay_minutes", number=2, type=5, label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = pool.FindFileByName("flights.proto").message_types_by_name
    kinds = (found["Other"], found["Flight"].nested_types[0])
    other, leg_class = map(message_factory.GetMessageClass, kinds)
    return other, leg_class
