"""Names of hosts: each address is tried, none holds up another, and nothing is left open. (issue 10, section 4)"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from partita.net import names
from partita.net.config import ClientConfig
from partita.net.connection import Connection
from partita.net.errors import Disconnected
from support.clients.dead_servers import listening, refusing, silent

Found = list[tuple[Any, ...]]
NAME = "kafka.example"


def at(host: str, port: int) -> tuple[Any, ...]:
    """One row of what `socket.getaddrinfo` answers."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    where = (host, port, 0, 0) if ":" in host else (host, port)
    return (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", where)


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Found]], None]:
    """Sets what the system answers for `NAME`."""
    real = socket.getaddrinfo

    def answer_by(answer: Callable[[], Found]) -> None:
        def asked(host: Any, port: Any, **how: Any) -> Any:
            if host != NAME or how.get("flags", 0) & socket.AI_NUMERICHOST:
                return real(host, port, **how)
            return answer()

        monkeypatch.setattr(socket, "getaddrinfo", asked)

    return answer_by


def run(coroutine: Awaitable[Any]) -> Any:
    async def limited() -> Any:
        return await asyncio.wait_for(coroutine, 20)

    return asyncio.run(limited())


async def connected_port(host: str) -> int:
    with await names.connect(host, 9092) as endpoint:
        return int(endpoint.getpeername()[1])


Resolver = Callable[[Callable[[], Found]], None]


def test_the_first_address_that_answers_is_taken(resolver: Resolver) -> None:
    with refusing() as nobody, listening() as port, listening() as later:
        resolver(lambda: [at("127.0.0.1", nobody), at("127.0.0.1", port), at("127.0.0.1", later)])
        assert run(connected_port(NAME)) == port


def test_an_address_of_a_family_that_is_not_there_is_passed_over(resolver: Resolver) -> None:
    """A name such as localhost has an IPv6 address first on many machines, and a broker may listen on IPv4 only."""
    with listening() as port:
        resolver(lambda: [at("::1", port), at("127.0.0.1", port)])
        assert run(connected_port(NAME)) == port


def test_a_silent_address_holds_up_the_next_for_a_moment_only(resolver: Resolver) -> None:
    async def timed() -> tuple[int, float]:
        began = asyncio.get_running_loop().time()
        return await connected_port(NAME), asyncio.get_running_loop().time() - began

    with silent() as nobody, listening() as port:
        resolver(lambda: [at("127.0.0.1", nobody), at("127.0.0.1", port)])
        found, took = run(timed())
    assert found == port
    assert names.NEXT_ADDRESS_AFTER_S * 0.9 < took < 10


def test_every_reason_is_told_when_no_address_answers(resolver: Resolver) -> None:
    with refusing() as nobody:
        resolver(lambda: [at("127.0.0.1", nobody), at("255.255.255.255", 9)])
        with pytest.raises(Disconnected, match=f"cannot connect to {NAME}:9092: Connection refused; "):
            run(Connection.open(NAME, 9092, ClientConfig()))


def test_an_unknown_name_and_what_is_no_name_are_told_as_such(resolver: Resolver) -> None:
    def unknown() -> Found:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    resolver(unknown)
    with pytest.raises(Disconnected, match=r"example:9092: the name is not known \(Name or service not known\)$"):
        run(Connection.open(NAME, 9092, ClientConfig()))
    with pytest.raises(Disconnected, match="that cannot be the name of a host"):
        run(Connection.open("a..b", 9092, ClientConfig()))


def test_a_look_up_that_hangs_is_left_at_once(resolver: Resolver) -> None:
    """By a time-out, and by a cancellation; the loop does not wait for the thread when it closes, either."""
    ends = threading.Event()

    def hang() -> Found:
        ends.wait(60)
        return [at("127.0.0.1", 1)]

    async def left() -> None:
        with pytest.raises(Disconnected, match=r"within 0\.02 s"):
            await Connection.open(NAME, 9092, ClientConfig(), setup_timeout_ms=20)
        task = asyncio.create_task(names.connect(NAME, 9092))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    resolver(hang)
    run(left())
    assert not ends.is_set()
    ends.set()


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_an_attempt_that_is_cancelled_closes_its_sockets(resolver: Resolver) -> None:
    async def left(port: int) -> None:
        task = asyncio.create_task(names.connect(NAME, 9092))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(task, names.NEXT_ADDRESS_AFTER_S * 1.2)

    with silent() as nobody, silent() as nobody_else:
        resolver(lambda: [at("127.0.0.1", nobody), at("127.0.0.1", nobody_else)])
        run(left(nobody))


def test_all_addresses_of_a_name_are_bound_to_one_port(resolver: Resolver) -> None:
    resolver(lambda: [at("127.0.0.1", 0), at("203.0.113.1", 0), at("127.0.0.2", 0)])
    bound = run(names.bind(NAME, 0))
    found = [endpoint.getsockname() for endpoint in bound]
    for endpoint in bound:
        endpoint.close()
    assert [host for host, _ in found] == ["127.0.0.1", "127.0.0.2"]
    assert found[0][1] == found[1][1] > 0


def test_an_address_that_the_machine_does_not_have_cannot_be_bound(resolver: Resolver) -> None:
    resolver(lambda: [at("203.0.113.1", 0)])
    with pytest.raises(OSError, match="assign requested address"):
        run(names.bind(NAME, 0))


def test_a_port_that_is_taken_is_told() -> None:
    with listening() as port, pytest.raises(OSError, match="Address already in use"):
        run(names.bind("127.0.0.1", port))


def test_no_host_is_every_interface() -> None:
    bound = run(names.bind("", 0))
    found = {endpoint.getsockname()[0] for endpoint in bound}
    for endpoint in bound:
        endpoint.close()
    assert "0.0.0.0" in found
    assert found <= {"0.0.0.0", "::"}
