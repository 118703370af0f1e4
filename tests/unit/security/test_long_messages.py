"""What a stranger may make the broker keep before the login."""

from __future__ import annotations

import pytest

from partita.security import scram
from partita.security.errors import SaslError
from partita.security.sasl_server import SCRAM_BYTES_MAX, ScramServer

FIRST = b"n,,n=alice,r="


def server() -> ScramServer:
    credential = scram.credential_of("SCRAM-SHA-256", b"p" * 32, b"salt", 4096)
    return ScramServer("SCRAM-SHA-256", lambda user: credential, "servernonce")


def test_a_message_of_sixteen_kib_is_read() -> None:
    mechanism = server()
    assert b"s=" in mechanism.step(FIRST + b"x" * (SCRAM_BYTES_MAX - len(FIRST))).message


def test_a_longer_one_is_refused_and_nothing_of_it_is_kept() -> None:
    """500 connections that sent a nonce of 400 kB each held 290 MB until their logins timed out."""
    mechanism = server()
    with pytest.raises(SaslError, match="invalid credentials"):
        mechanism.step(FIRST + b"x" * (SCRAM_BYTES_MAX - len(FIRST) + 1))
    assert mechanism.user == ""
