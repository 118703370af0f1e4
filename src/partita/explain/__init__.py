"""Causes and costs of a group's rebalances: facts in, one account per rebalance out. Pure.

`explain` turns `partita.explain.facts` into `partita.explain.account`.
"""

from partita.explain.account import Account
from partita.explain.asides import asides_of
from partita.explain.explaining import explain
from partita.explain.facts import Fact, Sure
from partita.wording import What

__all__ = ["Account", "Fact", "Sure", "What", "asides_of", "explain"]
