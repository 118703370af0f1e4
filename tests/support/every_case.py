"""One test that walks a table: for golden vectors, where pytest's own work for a case costs more than its judging."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from typing import Any

import pytest

WALKED = "cases walked"
LISTED = 20
"""So many of the cases that differ are listed with their reason; of the others only the number is."""


def every_case(
    names: str, cases: Collection[Any], name: Callable[[Any], object] = str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like `pytest.mark.parametrize`, but all cases are one test, which lists each case that fails by its name.

    Fixtures are shared by all cases of the test, so it must leave nothing behind in one that the next case meets.
    """
    parameters = [one.strip() for one in names.split(",")]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)
        fixtures = [parameter for parameter in signature.parameters.values() if parameter.name not in parameters]
        recorder = inspect.Parameter("record_property", inspect.Parameter.KEYWORD_ONLY)

        @functools.wraps(test, updated=())
        def walk(*, record_property: Callable[[str, object], None], **given: Any) -> None:
            assert cases, "no case was found"
            failures: list[tuple[object, BaseException]] = []
            for case in cases:
                values = [case] if len(parameters) == 1 else case
                try:
                    test(**dict(zip(parameters, values, strict=True)), **given)
                except (Exception, pytest.fail.Exception) as failure:
                    failures.append((name(case), failure))
            record_property(WALKED, len(cases))
            if failures:
                listed = [f"{case}: {type(why).__name__}: {why}" for case, why in failures[:LISTED]]
                listed += [f"and {len(failures) - LISTED} more"] * (len(failures) > LISTED)
                head = f"{len(failures)} of {len(cases)} cases fail"
                raise AssertionError("\n".join([head, *listed])) from failures[0][1]

        walk.pytestmark = list(getattr(test, "pytestmark", ()))  # type: ignore[attr-defined]
        walk.__signature__ = inspect.Signature([*fixtures, recorder])  # type: ignore[attr-defined]
        return walk

    return decorate
