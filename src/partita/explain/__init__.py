"""Why a group rebalanced and what it cost: facts in, one account per rebalance out. Pure.

`partita.explain.facts` is what goes in, `partita.explain.account` is what comes out, `explain` leads from one to the
other.
"""

from partita.explain.account import Account
from partita.explain.explaining import explain
from partita.explain.facts import Fact, Sure
from partita.explain.refusals import refusals_of
from partita.wording import What

__all__ = ["Account", "Fact", "Sure", "What", "explain", "refusals_of"]
