"""Where OAUTHBEARER tokens come from, and when they are renewed (security.md 10)."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from partita.errors import AuthenticationError
from partita.net.secured.tokens import TokenSource, renew_at_s, unsecured
from partita.secret import Secret
from partita.security.oauthbearer import BearerToken
from partita.security.settings import SaslSettings, TokenEndpoint, TokenRefresh
from support.loops import in_loop


class Endpoint:
    """Answers from a script: (status, body). Remembers authorization and form of each request."""

    def __init__(self, *answers: tuple[int, object]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, dict[str, list[str]]]] = []
        self.url = ""

    @contextmanager
    def running(self) -> Iterator[Endpoint]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                endpoint.asked.append((self.headers["Authorization"], form))
                status, body = endpoint.answers.pop(0)
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", "http://127.0.0.1:1/steal")
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{server.server_port}/token"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


def source(endpoint: Endpoint) -> TokenSource:
    told = TokenEndpoint(endpoint.url, "id", Secret("hush"), "read", retry_backoff_ms=1, retry_backoff_max_ms=1)
    return TokenSource(SaslSettings("OAUTHBEARER", token_endpoint=told))


@pytest.mark.case("SE-F14")
@in_loop
async def test_client_credentials_are_sent_once_and_the_token_is_shared() -> None:
    with Endpoint((200, {"access_token": "t", "expires_in": 3600})).running() as endpoint:
        tokens = source(endpoint)
        assert {(await tokens.token()).token.reveal() for _ in range(3)} == {"t"}
    ((authorization, form),) = endpoint.asked
    assert authorization == "Basic " + base64.b64encode(b"id:hush").decode()
    assert form == {"grant_type": ["client_credentials"], "scope": ["read"]}


@pytest.mark.case("SE-F15")
@in_loop
async def test_transient_failures_are_tried_again_and_a_refusal_is_not() -> None:
    with Endpoint((503, {}), (503, {}), (200, {"access_token": "t", "expires_in": 60})).running() as endpoint:
        assert (await source(endpoint).token()).token.reveal() == "t"
    with Endpoint((401, {"error": "invalid_client"})).running() as endpoint:
        with pytest.raises(AuthenticationError, match="answered 401 invalid_client for client id 'id'") as caught:
            await source(endpoint).token()
        assert len(endpoint.asked) == 1
    assert "hush" not in str(caught.value)


@pytest.mark.case("SE-F18")
@in_loop
async def test_a_redirect_is_not_followed() -> None:
    answer, refused = Endpoint((302, {})), pytest.raises(AuthenticationError, match=r"302.*redirects are not followed")
    with answer.running() as endpoint, refused:
        await source(endpoint).token()


@in_loop
async def test_an_answer_without_a_token_is_told() -> None:
    answer, refused = (
        Endpoint((200, {"token": "t"})),
        pytest.raises(AuthenticationError, match=r"the answer has no access_token"),
    )
    with answer.running() as endpoint, refused:
        await source(endpoint).token()


@in_loop
async def test_a_token_is_read_from_its_file_at_each_login(tmp_path: Path) -> None:
    path = tmp_path / "token"
    tokens = TokenSource(SaslSettings("OAUTHBEARER", token_endpoint=TokenEndpoint(f"file:{path}")))
    with pytest.raises(AuthenticationError, match=r"cannot read .*token"):
        await tokens.token()
    for text in ("first", "second"):
        path.write_text(text + "\n")
        assert (await tokens.token()).token.reveal() == text


@pytest.mark.case("SE-F16")
@pytest.mark.parametrize(
    ("life_s", "jitter", "due_s"),
    [(60, 0.0, 48), (60, 0.05, 51), (3_600, 0.0, 2_880), (3_600, 0.05, 3_060), (361, 0.0, 61)],
)
def test_a_token_is_renewed_at_four_fifths_of_its_life(life_s: int, jitter: float, due_s: int) -> None:
    assert renew_at_s(1_000, 1_000 + life_s, TokenRefresh(), lambda low, high: jitter) == pytest.approx(1_000 + due_s)


@pytest.mark.case("SE-F16")
@in_loop
async def test_a_failing_provider_is_no_harm_while_the_old_token_lives() -> None:
    now, left = [1_000.0], [BearerToken(Secret("old"), 1_060.0)]
    tokens = TokenSource(SaslSettings("OAUTHBEARER", token_provider=lambda: left.pop()), lambda: now[0])
    assert (await tokens.token()).token.reveal() == "old"
    now[0] = 1_055.0
    assert (await tokens.token()).token.reveal() == "old"
    now[0] = 1_061.0
    with pytest.raises(AuthenticationError, match="raised IndexError"):
        await tokens.token()


@in_loop
async def test_a_provider_that_exits_fails_the_login_not_the_thread() -> None:
    """Clients, D4: the event loop of the login may run in a thread of the client's own."""

    async def awaited() -> str:
        sys.exit(3)

    for provider in (lambda: sys.exit(3), awaited):
        tokens = TokenSource(SaslSettings("OAUTHBEARER", token_provider=provider))
        with pytest.raises(AuthenticationError, match="raised SystemExit: 3"):
            await tokens.token()


@pytest.mark.case("SE-F16")
@in_loop
async def test_a_token_is_renewed_in_the_background_until_the_client_is_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now, timers = [1_000.0], Timers()
    given: list[Any] = [("third", 1_220.0), RuntimeError("the identity provider is down"), ("second", 1_110.0)]
    given.append(("first", 1_060.0))

    def provider() -> object:
        one = given.pop()
        if isinstance(one, Exception):
            raise one
        return one

    settings = SaslSettings(
        "OAUTHBEARER", token_provider=provider, token_refresh=TokenRefresh(window_jitter=0.0, min_period_s=1)
    )
    tokens = TokenSource(settings, lambda: now[0], timers.later)
    assert (await tokens.token()).token.reveal() == "first"
    await timers.run_next(now, 48)
    assert len(given) == 2, "nobody asked, and it was renewed"
    assert (await tokens.token()).token.reveal() == "second"
    await timers.run_next(now, 49.6)
    assert "could not be renewed and ends in 12 s" in caplog.text
    assert "the identity provider is down" in caplog.text
    await timers.run_next(now, 10)
    assert (await tokens.token()).token.reveal() == "third"
    assert given == []
    tokens.close()
    assert timers.are_cancelled


class Timers:
    """A loop's timers, run by hand."""

    def __init__(self) -> None:
        self._last: tuple[float, Callable[[], object], asyncio.TimerHandle] | None = None

    def later(self, wait_s: float, callback: Callable[[], object]) -> asyncio.TimerHandle:
        loop = asyncio.get_running_loop()
        self._last = (wait_s, callback, asyncio.TimerHandle(0, lambda: None, (), loop))
        return self._last[2]

    async def run_next(self, now: list[float], expected_s: float) -> None:
        """Let `expected_s` pass, which must be what the timer was set to; wait for what it began."""
        assert self._last is not None
        wait_s, callback, _ = self._last
        assert wait_s == pytest.approx(expected_s)
        now[0] += wait_s
        begun = callback()
        assert isinstance(begun, asyncio.Task)
        await asyncio.wait([begun])
        await asyncio.sleep(0)

    @property
    def are_cancelled(self) -> bool:
        return self._last is not None and self._last[2].cancelled()


@in_loop
async def test_a_token_that_has_ended_is_refused_here_and_not_by_the_broker() -> None:
    tokens = TokenSource(SaslSettings("OAUTHBEARER", token_provider=lambda: ("t", 990.0)), lambda: 1_000.0)
    with pytest.raises(AuthenticationError, match="ended 10 s ago"):
        await tokens.token()


def test_an_unsecured_token_is_issued_at_a_whole_second() -> None:
    """Apache Kafka counts milliseconds, and a token of 0.6 of one after now came from the future."""
    token = unsecured({"sub": "alice"}, 1_763_838_123.9996).token.reveal().split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    assert (claims["sub"], claims["iat"]) == ("alice", 1_763_838_123)
    assert claims["exp"] > 1_763_838_123.9996
