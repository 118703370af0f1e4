"""The walk over a table that stands in for one pytest case each."""

from __future__ import annotations

import inspect

import pytest

from support.every_case import WALKED, every_case


def test_every_case_is_judged_and_all_that_fail_are_listed() -> None:
    judged: list[tuple[int, str]] = []
    recorded: dict[str, object] = {}

    @every_case("number, wanted", [(1, 1), (2, 3), (4, 4), (5, 0)], lambda case: f"case {case[0]}")
    def walked(number: int, wanted: int, fixture: str) -> None:
        judged.append((number, fixture))
        if number == 5:
            pytest.fail("a failure of pytest's own")
        assert number == wanted

    assert list(inspect.signature(walked).parameters) == ["fixture", "record_property"]
    with pytest.raises(AssertionError) as caught:
        walked(fixture="given", record_property=recorded.__setitem__)
    assert judged == [(1, "given"), (2, "given"), (4, "given"), (5, "given")]
    assert recorded == {WALKED: 4}
    first, *listed = str(caught.value).splitlines()
    assert first == "2 of 4 cases fail"
    assert listed[0].startswith("case 2: AssertionError")
    assert listed[-1] == "case 5: Failed: a failure of pytest's own"


def test_a_table_without_cases_fails() -> None:
    @every_case("number", [])
    def walked(number: int) -> None:
        """Never called."""

    with pytest.raises(AssertionError, match="no case was found"):
        walked(record_property={}.__setitem__)
