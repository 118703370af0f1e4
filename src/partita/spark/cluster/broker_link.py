"""A blocking face of the asyncio client, for code that Spark calls: one loop in a daemon thread, one cluster each.

Links are cached per process and per client options, so that the tasks of one worker share connections. A forked
worker never uses its parent's: the process id is part of the key.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import replace
from importlib import import_module
from typing import Any, TypeVar

from partita.errors import AuthenticationError
from partita.net.broker_news import WARNINGS
from partita.net.cluster import Cluster
from partita.net.config import ClientConfig
from partita.options import ConfigError
from partita.references import resolve_options
from partita.security.meaning import security_of_options
from partita.spark.settings.client_checks import in_words_of_spark, whole_number
from partita.spark.settings.options import without_executors

_LOG = logging.getLogger("partita.spark")
T = TypeVar("T")
TIMES = (
    "request.timeout.ms",
    "default.api.timeout.ms",
    "metadata.max.age.ms",
    "retry.backoff.ms",
    "retry.backoff.max.ms",
    "reconnect.backoff.ms",
    "reconnect.backoff.max.ms",
    "connections.max.idle.ms",
)
"""Client options that go to the connections as they are, in milliseconds."""

_links: dict[tuple[int, tuple[tuple[str, str], ...]], BrokerLink] = {}
_links_lock = threading.Lock()


class BrokerLink:
    """Runs coroutines that use `cluster` in the link's own thread."""

    def __init__(self, client: Mapping[str, str]) -> None:
        self.client = client
        self._loop = asyncio.new_event_loop()
        try:
            self.cluster = Cluster(client["bootstrap.servers"], _config(client))
        except ConfigError as error:
            raise ConfigError(in_words_of_spark(error)) from None
        self.cluster.pool.news.heard = _log
        threading.Thread(target=self._loop.run_forever, name="partita-spark", daemon=True).start()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start the coroutine and return a future of its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine and return its result or raise its error. Interrupting the wait cancels it."""
        future = self.submit(work)
        try:
            return future.result()
        except AuthenticationError as refused:
            refused.args = (in_words_of_spark(refused),)
            raise
        finally:
            future.cancel()


def link_to(client: Mapping[str, str]) -> BrokerLink:
    """Return this process's link for these `kafka.*` options (without the prefix); created on first use."""
    key = (os.getpid(), tuple(sorted(client.items())))
    with _links_lock:
        if key not in _links:
            _links[key] = BrokerLink(client)
        return _links[key]


def _log(kind: str, text: str, _: dict[str, Any]) -> None:
    _LOG.log(logging.WARNING if kind in WARNINGS else logging.INFO, "%s", text, extra={"kind": kind})


def _config(client: Mapping[str, str]) -> ClientConfig:
    plain = ClientConfig()
    times: dict[str, Any] = {name.replace(".", "_"): whole_number(client, name, 0) for name in TIMES if name in client}
    security = security_of_options(resolve_options(without_executors(client)))
    if security.sasl is not None and isinstance(security.sasl.token_provider, str):
        provider = imported(security.sasl.token_provider)
        security = replace(security, sasl=replace(security.sasl, token_provider=provider))
    return replace(plain, client_id=client.get("client.id", "partita-spark"), security=security, **times)


def imported(name: str) -> Any:
    """Return a token provider by its dotted name, since options of Spark are text. Raises ConfigError."""
    module, colon, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute if colon else "")
    except (ImportError, AttributeError, ValueError):
        raise ConfigError(
            f"kafka.sasl.oauth.token.provider must be module:function, importable on every executor, not {name!r}"
        ) from None
