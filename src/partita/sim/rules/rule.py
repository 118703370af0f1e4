"""How a checker says that a rule is broken; S is for safety, L for progress."""

from __future__ import annotations


class RuleBroken(Exception):
    """An invariant was violated."""

    def __init__(self, rule: str, what: str) -> None:
        super().__init__(f"{rule}: {what}")
        self.rule = rule
        self.what = what


def must(holds: object, rule: str, what: str) -> None:
    """Raise RuleBroken unless it holds."""
    if not holds:
        raise RuleBroken(rule, what)
