"""Java properties files."""

from __future__ import annotations

import pytest

from partita.properties import parse_properties


@pytest.mark.case("SE-Q06")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b\n", {"a": "b"}),
        ("a : b\nc d e", {"a": "b", "c": "d e"}),
        ("# no\n! no\n\n  a=1", {"a": "1"}),
        ("j=org.X \\\n    user=\"u\" \\\n    password=\"p\";\nb=2", {"j": 'org.X user="u" password="p";', "b": "2"}),
        (r"path=C\:\\dir\\", {"path": "C:\\dir\\"}),
        (r"a\ b\=c=x\ty\u0041", {"a b=c": "x\tyA"}),
        ("a=1\na=2", {"a": "2"}),
        ("empty=\nlone", {"empty": "", "lone": ""}),
        ("a=1\\", {"a": "1"}),
        ("a=x \\\n# part of it", {"a": "x # part of it"}),
        ("a==b", {"a": "=b"}),
        ("", {}),
    ],
)  # fmt: skip
def test_a_file_is_read_as_java_reads_it(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_a_bad_escape_names_its_line() -> None:
    with pytest.raises(ValueError, match=r"line 3: \\u must be followed"):
        parse_properties("a=1\n\nb=\\uxyzw")
    assert parse_properties(r"a=\\uxyz") == {"a": r"\uxyz"}
