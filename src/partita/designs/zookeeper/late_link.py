"""A link between two servers that delivers one direction late and in order: real replication lag."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time

CHUNK_BYTES = 65536


class LateLink:
    """Passes bytes between clients of `port` and the target. The target's bytes come `delay_s` late.

    While the target does not listen, connections are closed at once; the other side tries again.
    """

    def __init__(self, target_port: int) -> None:
        self.delay_s = 0.0
        self._target = ("127.0.0.1", target_port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True, name="late-link").start()

    def close(self) -> None:
        """End the link and every connection through it."""
        for one in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self._target, timeout=5)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            self._open += [near, far]
            late: queue.Queue[tuple[float, bytes]] = queue.Queue()
            for work, arguments in ((_pass_on, (near, far)), (self._receive, (far, late)), (_deliver, (late, near))):
                threading.Thread(target=work, args=arguments, daemon=True, name="late-link").start()

    def _receive(self, far: socket.socket, late: queue.Queue[tuple[float, bytes]]) -> None:
        data = b"-"
        while data:
            try:
                data = far.recv(CHUNK_BYTES)
            except OSError:
                data = b""
            late.put((time.monotonic() + self.delay_s, data))


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(CHUNK_BYTES):
            target.sendall(data)
    except OSError:
        pass
    _end(source, target)


def _deliver(late: queue.Queue[tuple[float, bytes]], near: socket.socket) -> None:
    while True:
        at, data = late.get()
        time.sleep(max(0.0, at - time.monotonic()))
        try:
            if not data:
                break
            near.sendall(data)
        except OSError:
            break
    _end(near)


def _end(*sockets: socket.socket) -> None:
    for one in sockets:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
