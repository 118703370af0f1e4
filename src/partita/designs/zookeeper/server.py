"""Start and stop ZooKeeper servers: one alone, or three of which one may lag behind.

A server is ready when it says so itself (the line "Mode" in its answer to "srvr"), never because its port is open. It
ends with the process that started it: a shell between the two waits for the end of its standard input.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

from partita.designs.zookeeper.jars import NoZooKeeper, find_jars, server_command
from partita.designs.zookeeper.late_link import LateLink
from partita.designs.zookeeper.ports import free_ports

READY_WITHIN_S = 20.0
STOP_WITHIN_S = 5.0
LOOK_EVERY_S = 0.02
_UNTIL_STDIN_ENDS = """
exec 3<&0
"$@" </dev/null 3<&- &
server=$!
{ cat <&3 >/dev/null; kill "$server"; } 2>/dev/null &
wait "$server"
"""
_SETTINGS = """dataDir={folder}/data
clientPort={port}
clientPortAddress=127.0.0.1
tickTime={tick_ms}
maxSessionTimeout=60000
minSessionTimeout={tick_ms}
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=srvr,mntr,cons,wchs
"""


class Server:
    """One server process. `port` is where clients connect."""

    def __init__(self, folder: Path, *, jars: list[Path] | None = None, tick_ms: int = 250, extra: str = "") -> None:
        self.folder = folder
        self.port = free_ports(1)[0]
        self._jars = jars or find_jars()
        self._settings = _SETTINGS.format(folder=folder, port=self.port, tick_ms=tick_ms) + extra
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """The address that clients connect to."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the process; it is not ready yet. Raises NoZooKeeper without a Java."""
        (self.folder / "data").mkdir(parents=True, exist_ok=True)
        settings = self.folder / "zoo.cfg"
        settings.write_text(self._settings)
        command = ["sh", "-c", _UNTIL_STDIN_ENDS, "sh", *server_command(self._jars, settings)]
        with (self.folder / "output.txt").open("wb") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=output, stderr=output, start_new_session=True
            )

    def wait_ready(self, within_s: float = READY_WITHIN_S) -> str:
        """Wait until it serves; return its mode. Raises NoZooKeeper with the end of its output."""
        until = time.monotonic() + within_s
        said = ""
        while time.monotonic() < until:
            said = self.four_letters("srvr") or said
            if mode := re.search(r"^Mode: (\w+)", said, re.MULTILINE):
                return mode[1]
            if self._process is None or self._process.poll() is not None:
                said = f"it ended with exit code {self._process and self._process.returncode}"
                break
            time.sleep(LOOK_EVERY_S)
        output = (self.folder / "output.txt").read_text(errors="replace")
        lines = [line for line in output.splitlines() if not line.startswith("SLF4J")]
        told = " / ".join([*said.splitlines()[:1], *lines[-3:]]) or "it says nothing"
        raise NoZooKeeper(f"ZooKeeper at {self.address} did not get ready within {within_s:g} s: {told}")

    def four_letters(self, word: str) -> str:
        """Return the answer to one of ZooKeeper's four-letter words; empty without an answer."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(word.encode())
                answer = b""
                while part := connection.recv(65536):
                    answer += part
        except OSError:
            return ""
        return answer.decode(errors="replace")

    def stop(self) -> None:
        """End the process, politely first. Does nothing when it does not run."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class ZooKeeper:
    """A single server, ready: `with ZooKeeper(folder) as zookeeper: ... zookeeper.addresses[0]`."""

    def __init__(self, folder: Path, *, tick_ms: int = 250) -> None:
        self.folder = folder
        self.tick_ms = tick_ms
        self.servers: list[Server] = []

    @property
    def addresses(self) -> list[str]:
        """The address of each server."""
        return [server.address for server in self.servers]

    def __enter__(self) -> ZooKeeper:
        for attempt in (1, 2):
            server = Server(self.folder / f"server-{attempt}", tick_ms=self.tick_ms)
            self.servers = [server]
            try:
                server.start()
                server.wait_ready()
            except NoZooKeeper:
                server.stop()
                if attempt == 2:
                    raise
            except BaseException:
                server.stop()
                raise
            else:
                return self
        raise AssertionError("the second attempt returns or raises")

    def __exit__(self, *_: object) -> None:
        for server in self.servers:
            server.stop()

    def set_lag(self, ms: int) -> None:
        """Only an ensemble has a server that lags. Raises NoZooKeeper."""
        raise NoZooKeeper("a single server does not lag behind itself")


class Ensemble(ZooKeeper):
    """Three servers, ready; the last one leads. The first hears from it through a link that can be made late."""

    def __enter__(self) -> Ensemble:
        ports = free_ports(6)
        quorum = [(ports[2 * i], ports[2 * i + 1]) for i in range(3)]
        self._link = LateLink(quorum[2][0])
        for i in range(3):
            places = [
                f"server.{j + 1}=127.0.0.1:{self._link.port if (i, j) == (0, 2) else quorum[j][0]}:{quorum[j][1]}"
                for j in range(3)
            ]
            folder = self.folder / f"server-{i + 1}"
            (folder / "data").mkdir(parents=True, exist_ok=True)
            (folder / "data" / "myid").write_text(f"{i + 1}\n")
            extra = "\n".join(["initLimit=20", "syncLimit=20", *places, ""])
            self.servers.append(Server(folder, tick_ms=self.tick_ms, extra=extra))
        try:
            first, second, third = self.servers
            third.start()
            first.start()
            # Two of three elect the one with the highest number; the second comes when that is decided.
            led = third.wait_ready()
            second.start()
            modes = [first.wait_ready(), second.wait_ready(), led]
            if modes != ["follower", "follower", "leader"]:
                raise NoZooKeeper(f"the third of three servers should lead; they are {', '.join(modes)}")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._link.close()

    def set_lag(self, ms: int) -> None:
        """Let the first server learn of every write `ms` later than the others."""
        self._link.delay_s = ms / 1000
