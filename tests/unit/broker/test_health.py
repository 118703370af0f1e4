"""What a broker says of itself to who starts, watches and ends it."""

from __future__ import annotations

import asyncio
import json
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from partita import Broker
from partita.broker.launch import BrokerSettings, start_broker
from partita.broker.measuring.health import health_of


def asked(broker: Broker, path: str) -> tuple[int, dict[str, object]]:
    try:
        with urlopen(f"http://127.0.0.1:{broker.running.admin_port}{path}") as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        return error.code, json.load(error)


@pytest.mark.parametrize(
    ("failure", "shards", "closing", "soon", "ok", "status", "reasons"),
    [
        (None, {}, False, False, True, "ready", []),
        (None, {"active": 50}, False, False, True, "ready", []),
        (None, {}, False, True, True, "loading", ["groups are not loaded yet"]),
        (None, {"loading": 3, "active": 47}, False, False, True, "loading", ["3 coordinator shards are loading"]),
        (None, {"failed": 1}, False, False, True, "failed", ["1 coordinator shards have failed"]),
        (None, {"loading": 3}, True, False, True, "closing", ["the broker is stopping", "3 coordinator"]),
        ("EIO", {"failed": 2}, True, False, False, "failed", ["the log directory failed: EIO", "the broker is", "2 "]),
    ],
)
def test_the_gravest_fact_gives_the_status(
    failure: str | None,
    shards: dict[str, int],
    closing: bool,
    soon: bool,
    ok: bool,
    status: str,
    reasons: list[str],
) -> None:
    health = health_of(failure, shards, is_closing=closing, loads_soon=soon)
    assert (health.ok, health.status, health.is_ready) == (ok, status, status == "ready")
    assert len(health.reasons) == len(reasons)
    assert all(told.startswith(reason) for told, reason in zip(health.reasons, reasons, strict=True))


def test_a_broker_that_loads_is_healthy_and_not_ready() -> None:
    with Broker(admin_port=0) as broker:
        broker.produce("t", "x")
        assert asked(broker, "/ready") == (200, {"ok": True, "status": "ready", "reasons": []})
        broker.control.hold_load("g")
        loading = {"ok": True, "status": "loading", "reasons": ["1 coordinator shards are loading"]}
        assert asked(broker, "/ready") == (503, loading)
        assert asked(broker, "/health") == (200, loading)
        broker.control.release_load("g")
        assert asked(broker, "/ready")[0] == 200


def test_a_broker_whose_disk_failed_and_that_goes_on_is_neither() -> None:
    with Broker({"partita.log.failure": "offline"}, admin_port=0) as broker:
        broker.cluster.store.failure = "EIO on write"
        for path in ("/health", "/ready"):
            status, told = asked(broker, path)
            assert (status, told["ok"], told["status"]) == (503, False, "failed")
            assert told["reasons"] == ["the log directory failed: EIO on write"]
        broker.cluster.store.failure = None


def test_a_broker_that_stops_answers_until_it_has_stopped() -> None:
    """A closing broker is healthy, not ready, and takes no more orders."""

    async def story() -> list[tuple[int, bytes]]:
        running = await start_broker(BrokerSettings(admin_port=0, admin_token="t"))
        answers = []

        async def ask(head: str) -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", running.admin_port)
            writer.write(f"{head} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            answer = await reader.read()
            writer.close()
            answers.append((int(answer.split()[1]), answer.partition(b"\r\n\r\n")[2]))

        kept = running.upkeep.stop

        async def stop_and_ask() -> None:
            for head in ("GET /health", "GET /ready"):
                await ask(head)
            await ask("GET /nodes HTTP/1.1\r\nAuthorization: Bearer t\r\nX:")
            await kept()

        running.upkeep.stop = stop_and_ask  # type: ignore[method-assign]  # the moment in the middle of the stop
        await running.stop()
        with pytest.raises(OSError):  # noqa: PT011  # nobody listens any more
            await asyncio.open_connection("127.0.0.1", running.admin_port)
        return answers

    health, ready, nodes = asyncio.run(story())
    assert (health[0], ready[0], nodes[0]) == (200, 503, 503)
    assert json.loads(ready[1])["status"] == "closing"
    assert json.loads(nodes[1]) == {"error": "the broker is stopping"}
