"""Certificate names become principals as Kafka has it. (security.md 5)"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from partita.security.errors import NoMatchingRule
from partita.security.principal_rules import PrincipalRules, PrincipalRulesError
from support.every_case import every_case

VECTORS = Path(__file__).parents[2] / "vectors" / "security.jsonl"
ROWS: list[dict[str, Any]] = [
    row
    for line in VECTORS.read_text(encoding="utf-8").splitlines()
    if (row := json.loads(line))["kind"] == "ssl_principal"
]
ERRORS = {"NoMatchingRule": NoMatchingRule, "IllegalArgumentException": PrincipalRulesError}
TWO_RULES = "RULE:^CN=(svc-[a-z]+),O=Partita$/$1/U,RULE:^CN=([A-Za-z]+),OU=([A-Za-z]+),.*$/$1@$2/L,DEFAULT"


def principal(rules: str, name: str) -> str:
    return PrincipalRules(rules).principal_name(name)


@pytest.mark.case("SE-H10")
@every_case("row", ROWS, lambda row: f"{row['rules']} {row['name']}")
def test_every_name_becomes_what_kafka_makes_of_it(row: dict[str, Any]) -> None:
    if "error" in row:
        with pytest.raises(ERRORS[row["error"]]):
            principal(row["rules"], row["name"])
    else:
        assert principal(row["rules"], row["name"]) == row["principal"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("CN=Carol,OU=Team,O=Partita,C=DE", "carol@team", marks=pytest.mark.case("SE-H04")),
        pytest.param("CN=svc-orders,O=Partita", "SVC-ORDERS", marks=pytest.mark.case("SE-H05")),
        pytest.param("CN=localhost", "CN=localhost", marks=pytest.mark.case("SE-H06")),
    ],
)
def test_the_first_rule_that_matches_counts(name: str, expected: str) -> None:
    assert principal(TWO_RULES, name) == expected


@pytest.mark.parametrize(
    ("replacement", "expected"),
    [("$12", "a2"), ("$0!", "CN=a!"), ("\\$1", "$1"), ("x\\\\y", "x\\y")],
)
def test_replacements_read_as_in_java(replacement: str, expected: str) -> None:
    assert principal(f"RULE:^CN=(.*)$/{replacement}/", "CN=a") == expected


@pytest.mark.parametrize(
    ("rules", "named"),
    [("RULE:(/x/", "cannot be used"), ("RULE:a/$x/", "no group is named in '.x'"), ("DEFAULT,x", "'x'")],
)
def test_rules_that_cannot_be_used_are_named(rules: str, named: str) -> None:
    with pytest.raises(PrincipalRulesError, match=named):
        PrincipalRules(rules)
