import json
import pickle
from pathlib import Path
from typing import Any

import partita.errors
from partita.errors import KafkaError, UnknownMemberIdError, error_for
from partita.protocol.error_codes import ErrorCode
from support.every_case import every_case

KAFKAS = json.loads((Path(__file__).parents[2] / "vectors" / "errors.json").read_text())["errors"]


def test_there_are_exactly_the_codes_of_the_release() -> None:
    assert {code.name: int(code) for code in ErrorCode} == {error["name"]: error["code"] for error in KAFKAS}


@every_case("error", KAFKAS, lambda error: error["name"])
def test_a_code_tells_what_helps(error: dict[str, Any]) -> None:
    code = ErrorCode(error["code"])
    assert (code.retriable, code.refresh_metadata) == (error["retriable"], error["refresh_metadata"])
    assert code.meaning
    assert "\n" not in code.meaning


def test_a_code_of_a_later_release_is_an_unknown_server_error() -> None:
    assert ErrorCode(9999) is ErrorCode.UNKNOWN_SERVER_ERROR


@every_case("code", [code for code in ErrorCode if code], lambda code: code.name)
def test_every_code_has_an_error_class_of_its_own(code: ErrorCode) -> None:
    error = error_for(code, "why")
    assert type(error) is not KafkaError
    assert (error.code, error.retriable, str(error)) == (code, code.retriable, f"{code.name}: why")
    assert getattr(partita.errors, type(error).__name__) is type(error)


def test_an_error_without_a_message_says_what_its_code_means() -> None:
    assert str(error_for(25)) == "UNKNOWN_MEMBER_ID: the group has no such member"
    assert str(error_for(25, None)) == str(UnknownMemberIdError())


def test_an_error_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(error_for(ErrorCode.ILLEGAL_GENERATION, "generation 6, not 7")))
    assert (error.code, str(error)) == (ErrorCode.ILLEGAL_GENERATION, "ILLEGAL_GENERATION: generation 6, not 7")
