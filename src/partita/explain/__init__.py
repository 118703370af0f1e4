"""Causes and costs of a group's rebalances: facts in, one account per rebalance out. Pure.

`explain` turns `partita.explain.facts` into `partita.explain.account`.
"""

from partita.explain.account import Account
from partita.explain.explaining import explain
from partita.explain.facts import Fact, Sure
from partita.explain.refusals import refusals_of
from partita.wording import What

__all__ = ["Account", "Fact", "Sure", "What", "explain", "refusals_of"]
