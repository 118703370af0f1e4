"""The assignor on the page docs/server-side-assignors.md does what the page says."""

import re
from pathlib import Path
from typing import Any

from partita.assignors.interface import Assignor, Subscription, TopicMetadata

PAGE = (Path(__file__).parents[3] / "docs" / "server-side-assignors.md").read_text()


def by_weight() -> Assignor:
    names: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0], names)
    made = names["ByWeight"]()
    assert isinstance(made, Assignor)
    return made


def test_heavy_partitions_are_shared_first_and_the_light_ones_level_the_load() -> None:
    members = {name: Subscription(["orders", "notes"]) for name in "ab"}
    shares = by_weight().assign(TopicMetadata({"orders": 3, "notes": 10}), members)
    load = {member: sum(10 if topic == "orders" else 1 for topic, _ in given) for member, given in shares.items()}
    assert load == {"a": 20, "b": 20}
    assert sum(map(len, shares.values())) == 13


def test_members_keep_what_they_have_where_that_costs_no_balance() -> None:
    assignor, metadata = by_weight(), TopicMetadata({"orders": 4})
    had = {"a": [("orders", 1), ("orders", 3)], "b": [("orders", 0), ("orders", 2)]}
    members = {name: Subscription(["orders"], owned_partitions=owned) for name, owned in had.items()}
    shares = assignor.assign(metadata, members)
    assert {member: set(given) for member, given in shares.items()} == {m: set(given) for m, given in had.items()}
