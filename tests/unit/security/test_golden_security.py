"""Kafka's own answers about SCRAM messages and JAAS lines (vectors/security.jsonl)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from partita.secret import Secret
from partita.security import scram
from partita.security.errors import SaslError
from partita.security.jaas import JaasError, parse_jaas
from support.every_case import every_case

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "vectors" / "security.jsonl").read_text(encoding="utf-8").splitlines()
]


def rows(*kinds: str) -> list[dict[str, Any]]:
    return [row for row in ROWS if row["kind"] in kinds]


@pytest.mark.case("SE-D16")
@every_case("row", rows("scram"), lambda row: f"{row['mechanism']}-{row['user']}-{row['iterations']}")
def test_an_exchange_is_kafkas_to_the_byte(row: dict[str, Any]) -> None:
    mechanism, salt = row["mechanism"], bytes.fromhex(row["salt"])
    salted = scram.salted_password(mechanism, Secret(row["password"]), salt, row["iterations"])
    assert salted.hex() == row["salted_password"]
    credential = scram.credential_of(mechanism, salted, salt, row["iterations"])
    assert credential.stored_key.hex() == row["stored_key"]
    assert credential.server_key.hex() == row["server_key"]

    client = scram.ScramClient(mechanism, row["user"], row["client_nonce"])
    assert client.first().decode() == row["client_first"]
    first = scram.parse_client_first(row["client_first"])
    challenge = scram.server_first(first, row["server_nonce"], salt, row["iterations"])
    assert challenge == row["server_first"]
    final = client.final(client.challenged(challenge.encode()), salted)
    assert final.decode() == row["client_final"]
    proven = scram.server_final(mechanism, credential, first, challenge, scram.parse_client_final(final.decode()))
    assert proven == row["server_final"]
    client.finish(proven.encode())


@pytest.mark.case("SE-D17")
@every_case("row", rows("client_first", "server_first", "client_final", "server_final"), repr)
def test_messages_are_accepted_and_refused_as_kafka_does(row: dict[str, Any]) -> None:
    parse = {
        "client_first": _client_first,
        "server_first": _server_first,
        "client_final": _client_final,
        "server_final": _server_final,
    }[row["kind"]]
    if "error" in row:
        with pytest.raises(SaslError):
            parse(row["text"])
    else:
        assert parse(row["text"]) == row["parsed"]


def _client_first(text: str) -> dict[str, Any]:
    found = scram.parse_client_first(text)
    return {
        "sasl_name": scram.escape(found.user),
        "nonce": found.nonce,
        "authorization_id": found.authorization_id,
    }


def _server_first(text: str) -> dict[str, Any]:
    found = scram.parse_server_first(text)
    return {"nonce": found.nonce, "salt": found.salt.hex(), "iterations": found.iterations}


def _client_final(text: str) -> dict[str, Any]:
    found = scram.parse_client_final(text)
    return {"channel_binding": found.channel_binding.hex(), "nonce": found.nonce, "proof": found.proof.hex()}


def _server_final(text: str) -> dict[str, Any]:
    error, signature = scram.parse_server_final(text)
    return {"error": error, "signature": None if signature is None else signature.hex()}


@pytest.mark.case("SE-N18")
@every_case("row", rows("jaas"), lambda row: row["text"])
def test_a_jaas_line_is_read_as_kafka_reads_it(row: dict[str, Any]) -> None:
    if "error" in row:
        with pytest.raises(JaasError) as caught:
            parse_jaas(row["text"])
        assert str(caught.value) == row["message"]
    else:
        module = parse_jaas(row["text"])
        (entry,) = row["entries"]
        assert module.name == entry["module"]
        assert f"LoginModuleControlFlag: {module.flag}" == entry["flag"]
        assert {key: value.reveal() for key, value in module.options.items()} == entry["options"]
