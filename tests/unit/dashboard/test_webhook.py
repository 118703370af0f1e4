"""The webhook: what begins and ends is posted once, also after an outage of the receiver."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from partita.dashboard.webhook import Webhook
from support.dashboard.world import FakeCluster, member


class Receiver(HTTPServer):
    """Keeps what is posted; answers with `status`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Hook)
        self.posts: list[dict[str, Any]] = []
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"


class Hook(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(self.server.status)
        self.end_headers()
        if self.server.status == 200:
            self.server.posts.append(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep silent."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def world() -> FakeCluster:
    """A group that stands still: members, lag, and nothing committed for two minutes."""
    world = FakeCluster()
    for step in range(14):
        world.log("orders", 0, 100 + step)
        world.group("billing", {("orders", 0): 50}, [member("till-1", ("orders", 0))])
        world.look()
        world.pass_s(10)
    return world


def look(hook: Webhook) -> None:
    asyncio.run(hook.look())


def test_what_begins_and_ends_is_posted_once(receiver: Receiver, world: FakeCluster) -> None:
    hook = Webhook(receiver.url, world.site().rows, "staging")
    look(hook)
    look(hook)
    (post,) = receiver.posts
    assert [(found["group"], found["kind"]) for found in post["began"]] == [("billing", "standstill")]
    assert post["text"].startswith("staging: billing stands still: ")
    world.group("billing", {("orders", 0): 113}, [member("till-1", ("orders", 0))])
    world.look()
    look(hook)
    assert [(found["group"], found["kind"]) for found in receiver.posts[1]["ended"]] == [("billing", "standstill")]
    assert "staging: no longer: billing stands still" in receiver.posts[1]["text"]


def test_a_receiver_that_is_down_hears_of_it_later(
    receiver: Receiver, world: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    hook = Webhook(receiver.url, world.site().rows)
    receiver.status = 503
    look(hook)
    look(hook)
    assert [record.getMessage() for record in caplog.records] == [
        "the webhook did not take 1 change: HTTP Error 503: Service Unavailable"
    ], "said once"
    receiver.status = 200
    look(hook)
    assert len(receiver.posts) == 1


def test_a_lost_cluster_is_posted_and_ends_no_trouble_of_groups(receiver: Receiver, world: FakeCluster) -> None:
    hook = Webhook(receiver.url, world.site().rows)
    look(hook)
    world.observed.trouble = "nobody answers"
    world.observed.publish(world.observed.seen_ms)
    look(hook)
    assert [found["kind"] for found in receiver.posts[1]["began"]] == ["cluster"]
    assert receiver.posts[1]["ended"] == []
    world.observed.trouble = None
    world.look()
    look(hook)
    assert [found["kind"] for found in receiver.posts[2]["ended"]] == ["cluster"]


def test_a_webhook_is_an_address_of_http(world: FakeCluster) -> None:
    with pytest.raises(ValueError, match="not 'file:///etc/passwd'"):
        Webhook("file:///etc/passwd", world.site().rows)
