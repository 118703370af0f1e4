from typing import Any

import pytest

from partita.protocol.generate import HERE, formatted, main, module_source, sources
from partita.protocol.schema_file import Versions, parse

EXAMPLE = """
api 99 Example
request ExampleRequest 0-3 flexible 2+   # a comment
  name string
  reason string? 1+ = null
  parts []Part? null 3+
    id int32
    note string? 2+ tag 0 = null
"""


def test_the_generated_files_are_fresh(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().out


def test_no_file_is_left_of_a_schema_that_is_gone() -> None:
    assert {path.name for path in (HERE / "messages").glob("*.py")} == sources().keys() | {"__init__.py"}


def test_a_schema_file_is_read_into_fields_with_their_versions() -> None:
    file = parse(EXAMPLE)
    assert file.api == (99, "Example")
    (request,) = file.schemas
    assert (request.name, request.versions, request.flexible) == ("ExampleRequest", Versions(0, 3), Versions(2, 3))
    name, reason, parts = request.fields
    assert (name.versions, bool(name.nullable)) == (Versions(0, 3), False)
    assert (reason.versions, reason.nullable, reason.default) == (Versions(1, 3), Versions(1, 3), "null")
    assert (parts.is_array, parts.is_struct, parts.nullable) == (True, True, Versions(3, 3))
    assert (parts.fields[1].tag, parts.fields[1].tag_versions) == (0, Versions(2, 3))


@pytest.mark.parametrize(
    ("line", "reason"),
    [("  id", "line 2"), ("  id int32 sometimes", "unknown word 'sometimes'"), ("  id int32 1-x", "line 2")],
)
def test_a_line_that_cannot_be_read_is_named(line: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse(f"request ExampleRequest 0-3\n{line}\n")
    with pytest.raises(ValueError, match="'flexible' expected"):
        parse("request ExampleRequest 0-3 flex 2+")


def test_generated_code_does_what_its_schema_says() -> None:
    namespace: dict[str, Any] = {"__name__": "example"}
    exec(formatted(module_source("example", parse(EXAMPLE))), namespace)
    request, part = namespace["ExampleRequest"], namespace["Part"]
    given = request(name="n", reason="r", parts=[part(id=1), part(id=2, note="x")])
    assert given.encode(0).hex() == "00016e" + "00000002" + "00000001" + "00000002"
    assert given.encode(3).hex() == "026e" + "0272" + "03" + "0000000100" + "0000000201000" + "20278" + "00"
    assert request.decode(given.encode(3), 3) == given
    assert request.decode(request(parts=None).encode(3), 3).parts is None
    with pytest.raises(ValueError, match="parts cannot be null"):
        request(parts=None).encode(2)
