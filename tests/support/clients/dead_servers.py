"""Servers that are of no use to a client, each in its own way, on ports of this machine."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def listening(backlog: int = 8) -> Iterator[int]:
    """A port whose connections are accepted by the system, and answered by no program."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(backlog)
        yield listener.getsockname()[1]


@contextmanager
def refusing() -> Iterator[int]:
    """A port that is bound, so that nobody else takes it, and where nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@contextmanager
def silent() -> Iterator[int]:
    """A port whose queue is full, so that it drops SYNs: a client that connects to it waits."""
    with listening(0) as port:
        queued = []
        for _ in range(8):
            queued.append(socket.socket())
            queued[-1].setblocking(False)
            queued[-1].connect_ex(("127.0.0.1", port))
        yield port
        for endpoint in queued:
            endpoint.close()


@contextmanager
def web() -> Iterator[int]:
    """A server that answers everything with HTTP's 400."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_refuse_politely, args=(server,), daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def _refuse_politely(server: socket.socket) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection:
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
