"""Ten mistakes with security settings, made by four clients on one broker: how long until each says what, as a table.

`python bench/mistakes.py` prints Markdown. Each client gets 15 seconds and the options that it has for the mistake.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import ssl
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import confluent_kafka
import confluent_kafka.admin
import kafka
from aiokafka.abc import AbstractTokenProvider

from partita import Admin
from support.broker.secured import secured
from support.certificates import Certificates

WITHIN_SECONDS = 15.0
TEXT_CHARACTERS = 150


@dataclass(frozen=True)
class Mistake:
    """What is set, in words that every client has: protocol, mechanism, user, password, authority, token."""

    name: str
    listener: str
    protocol: str
    mechanism: str | None = None
    user: str = "alice"
    password: str = "secret"
    ca: str = "ca"
    host: str = "localhost"
    token: str | None = None
    topic: str | None = field(default=None)


def expired() -> str:
    """A token that has ended."""

    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none'})}.{part({'sub': 'alice', 'exp': time.time() - 60, 'iat': time.time() - 120})}."


MISTAKES = (
    Mistake("wrong password", "SASL_SSL", "SASL_SSL", "PLAIN", password="wrong"),
    Mistake("mechanism that is not offered", "SASL_SSL", "SASL_SSL", "SCRAM-SHA-512"),
    Mistake("plain text to a TLS port", "SSL", "PLAINTEXT"),
    Mistake("TLS to a plain port", "PLAINTEXT", "SSL"),
    Mistake("TLS and SASL to a SASL port without TLS", "SASL_PLAINTEXT", "SASL_SSL", "PLAIN"),
    Mistake("unknown authority", "SSL", "SSL", ca="other"),
    Mistake("wrong host name", "SSL", "SSL"),
    Mistake("SASL to a port without it", "PLAINTEXT", "SASL_PLAINTEXT", "PLAIN"),
    Mistake("no SASL to a port with it", "SASL_PLAINTEXT", "PLAINTEXT"),
    Mistake("expired token", "SASL_SSL", "SASL_SSL", "OAUTHBEARER", token="expired"),
    Mistake("missing right", "SASL_SSL", "SASL_SSL", "PLAIN", topic="secret"),
)


def partita_says(mistake: Mistake, bootstrap: str, ca: str) -> None:
    """Our admin client."""
    given: dict[str, Any] = {"bootstrap_servers": bootstrap, "security_protocol": mistake.protocol}
    if mistake.protocol.endswith("SSL"):
        given["ssl_ca_location"] = ca
    if mistake.mechanism:
        given |= {"sasl_mechanism": mistake.mechanism}
        if mistake.token:
            given["sasl_oauth_token_provider"] = expired
        else:
            given |= {"sasl_username": mistake.user, "sasl_password": mistake.password}
    with Admin(**given, default_api_timeout_ms=int(WITHIN_SECONDS * 1000)) as admin:
        if mistake.topic:
            admin.create_topic(mistake.topic)
        admin.list_topics()


def confluent_says(mistake: Mistake, bootstrap: str, ca: str) -> None:
    """librdkafka's admin client. Its callback for errors has causes that its exceptions lack: both are told."""
    told: list[str] = []
    given: dict[str, Any] = {
        "bootstrap.servers": bootstrap, "security.protocol": mistake.protocol, "log_level": 0,
        "error_cb": lambda error: told.append(str(error)),
    }  # fmt: skip
    if mistake.protocol.endswith("SSL"):
        given["ssl.ca.location"] = ca
    if mistake.mechanism:
        given["sasl.mechanism"] = mistake.mechanism
        if mistake.token:
            given["oauth_cb"] = lambda config: (expired(), time.time() + 3600)
        else:
            given |= {"sasl.username": mistake.user, "sasl.password": mistake.password}
    admin = confluent_kafka.admin.AdminClient(given)
    end = time.monotonic() + WITHIN_SECONDS
    if mistake.topic:
        created = admin.create_topics([confluent_kafka.admin.NewTopic(mistake.topic, 1, 1)])
        created[mistake.topic].result(WITHIN_SECONDS)
    try:
        admin.list_topics(timeout=WITHIN_SECONDS)
    except confluent_kafka.KafkaException as error:
        while not told and time.monotonic() < end:
            admin.poll(0.1)
        cause = f" (error_cb: {told[0]})" if told else ""
        raise RuntimeError(f"{error.args[0].str()}{cause}") from None


class Expired(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka has no types
    """As aiokafka wants it."""

    async def token(self) -> str:
        """The ended token."""
        return expired()


def _options(mistake: Mistake, bootstrap: str, ca: str) -> dict[str, Any]:
    """As aiokafka and kafka-python have them."""
    given: dict[str, Any] = {"bootstrap_servers": bootstrap, "security_protocol": mistake.protocol}
    if mistake.protocol.endswith("SSL"):
        given["ssl_context"] = ssl.create_default_context(cafile=ca)
    if mistake.mechanism:
        given["sasl_mechanism"] = mistake.mechanism
        if mistake.token:
            given["sasl_oauth_token_provider"] = Expired()
        else:
            given |= {"sasl_plain_username": mistake.user, "sasl_plain_password": mistake.password}
    return given


def aiokafka_says(mistake: Mistake, bootstrap: str, ca: str) -> None:
    """aiokafka's admin client."""
    from aiokafka.admin import AIOKafkaAdminClient, NewTopic

    async def run() -> None:
        admin = AIOKafkaAdminClient(**_options(mistake, bootstrap, ca))
        try:
            async with asyncio.timeout(WITHIN_SECONDS):
                await admin.start()
                if mistake.topic:
                    answer = await admin.create_topics([NewTopic(mistake.topic, 1, 1)])
                    raise RuntimeError(f"(an answer, no error) {answer.topic_errors}")
                await admin.list_topics()
        finally:
            with suppress(Exception):
                await admin.close()

    asyncio.run(run())


class ExpiredToken(kafka.sasl.oauth.AbstractTokenProvider if hasattr(kafka, "sasl") else object):  # type: ignore[misc]
    """As kafka-python wants it."""

    def token(self) -> str:
        """The ended token."""
        return expired()


def kafka_python_says(mistake: Mistake, bootstrap: str, ca: str) -> None:
    """kafka-python's admin client."""
    given = _options(mistake, bootstrap, ca)
    if mistake.token:
        given["sasl_oauth_token_provider"] = ExpiredToken()
    admin = kafka.KafkaAdminClient(**given, request_timeout_ms=int(WITHIN_SECONDS * 1000))
    try:
        if mistake.topic:
            admin.create_topics([kafka.admin.NewTopic(mistake.topic, 1, 1)])
        admin.list_topics()
    finally:
        admin.close()


CLIENTS: dict[str, Callable[[Mistake, str, str], None]] = {
    "partita": partita_says, "confluent-kafka": confluent_says, "aiokafka": aiokafka_says,
    "kafka-python": kafka_python_says,
}  # fmt: skip


def said(client: str, mistake: Mistake, bootstrap: str, ca: str) -> str:
    """How long it took, and the error."""
    begin = time.monotonic()
    try:
        CLIENTS[client](mistake, bootstrap, ca)
        text = "no error"
    except TimeoutError as error:
        text = f"TimeoutError {error}"
    except Exception as error:
        text = f"{error}" if client == "partita" else f"{type(error).__name__}: {error}"
    text = " ".join(text.split()).replace("|", "/").replace(bootstrap, "HOST:PORT").replace(str(Path(ca).parent), "DIR")
    return (
        f"{time.monotonic() - begin:.1f} s: {text[: 10 * TEXT_CHARACTERS if client == 'partita' else TEXT_CHARACTERS]}"
    )


def main() -> None:
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        other = Certificates(Path(folder), "Other").ca
        own = Path(folder) / "own"
        own.mkdir()
        jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required user_alice='secret';"
        authority = Certificates(Path(folder), "Elsewhere")
        options: dict[str, object] = {
            "authorizer.class.name": "standard",
            "listener.name.ssl.ssl.keystore.location": str(authority.issue("elsewhere", "broker.internal")),
            "listener.name.sasl_ssl.plain.sasl.jaas.config": jaas,
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas,
        }
        with secured(own, mechanisms="PLAIN,OAUTHBEARER", **options) as place:
            print("| mistake | " + " | ".join(CLIENTS) + " |\n|---" * 1 + "|---" * len(CLIENTS) + "|")
            row(MISTAKES[0], f"localhost:{place.port('SASL_SSL')}", str(place.certificates.ca))
            for mistake in MISTAKES:
                known = authority.ca if mistake.listener == "SSL" else place.certificates.ca
                ca = str(other if mistake.ca == "other" else known)
                print(row(mistake, f"{mistake.host}:{place.port(mistake.listener)}", ca), flush=True)
            sys.stdout.flush()
            os._exit(0)  # some clients have threads that never end


def row(mistake: Mistake, bootstrap: str, ca: str) -> str:
    """What each client says, all at once."""
    pool = ThreadPoolExecutor(len(CLIENTS))
    cells = [pool.submit(said, client, mistake, bootstrap, ca) for client in CLIENTS]
    done, _ = wait(cells, WITHIN_SECONDS + 2)
    pool.shutdown(wait=False)
    texts = (cell.result() if cell in done else f"nothing within {WITHIN_SECONDS:.0f} s" for cell in cells)
    return f"| {mistake.name} | {' | '.join(texts)} |"


if __name__ == "__main__":
    main()
