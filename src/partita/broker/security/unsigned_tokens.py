"""Unsigned tokens for clients of a test's broker, and what each client library takes them from."""

from __future__ import annotations

import base64
import json
import time
from importlib import import_module
from typing import Any

LIFETIME_S = 3_600


class UnsignedTokens:
    """Makes tokens for one user. Called, it returns a token and its end, as Partita and confluent-kafka ask for it."""

    def __init__(self, user: str, claim: str = "sub") -> None:
        """Set the user. `claim` is the one the broker reads the user from; `sub` gets the same."""
        self._user = user
        self.claims = ("sub",) if claim == "sub" else ("sub", claim)

    def __call__(self, config: str = "") -> tuple[str, float]:
        """(Token, end in seconds since 1970), good for an hour. `config` is what confluent-kafka passes."""
        now = time.time()
        ends = now + LIFETIME_S
        claims = {**dict.fromkeys(self.claims, self._user), "iat": now, "exp": ends}
        return f"{_part({'alg': 'none'})}.{_part(claims)}.", ends

    def for_aiokafka(self) -> Any:
        """An AbstractTokenProvider of aiokafka. Raises ImportError without aiokafka."""
        parent = import_module("aiokafka.abc").AbstractTokenProvider

        async def token(_: object) -> str:
            return self()[0]

        return type("UnsignedTokens", (parent,), {"token": token})()

    def for_kafka_python(self) -> Any:
        """An AbstractTokenProvider of kafka-python. Raises ImportError without kafka-python."""
        try:
            parent = import_module("kafka.net.sasl.oauth").AbstractTokenProvider
        except ImportError:  # kafka-python before 3
            parent = import_module("kafka.sasl.oauth").AbstractTokenProvider
        return type("UnsignedTokens", (parent,), {"token": lambda _: self()[0]})()


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
