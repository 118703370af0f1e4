"""The coordinator's settings are Kafka's: names, defaults, bounds."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import pytest

from partita.broker.config import BrokerConfig
from partita.group.config import GroupConfig

CONFIGS = json.loads((Path(__file__).parents[2] / "vectors" / "configs.json").read_text())["broker"]
KAFKAS = {entry["name"]: entry for entry in CONFIGS}


def test_names_and_defaults_are_kafkas() -> None:
    config = GroupConfig()
    for field in fields(config):
        name = field.name.replace("_", ".")
        if name.startswith("partita.") or name in ("max.message.bytes", "offset.metadata.max.bytes"):
            continue
        value = getattr(config, field.name)
        default = list(value) if isinstance(value, tuple) else value
        assert KAFKAS[name]["default"] == default, name


def test_every_group_option_of_kafka_is_there() -> None:
    """All of specification 2.1 to 2.3 but what 4.3.1 dropped or keeps for itself."""
    ours = {field.name.replace("_", ".") for field in fields(GroupConfig)}
    starts = ("group.", "offsets.", "offset.metadata")
    others = ("group.share", "group.streams", "group.coordinator.new", "group.consumer.assignor.offload")
    wanted = {name for name in KAFKAS if name.startswith(starts) and not name.startswith(others)}
    assert wanted <= ours


@pytest.mark.parametrize("field", [f for f in fields(GroupConfig) if not f.name.startswith("partita")])
def test_a_value_below_kafkas_bound_is_refused_with_the_bound(field: object) -> None:
    name: str = field.name  # type: ignore[attr-defined]  # a dataclass field
    entry = KAFKAS.get(name.replace("_", "."), {})
    valid = entry.get("valid") or ""
    if not valid.startswith("[") or entry["type"] == "LIST":
        return
    low = int(valid[1:].split(",")[0])
    GroupConfig(**cast("dict[str, Any]", {name: low}))
    with pytest.raises(ValueError, match=f"{name.replace('_', '.')}: must be at least {low}"):
        GroupConfig(**cast("dict[str, Any]", {name: low - 1}))


def test_session_bounds_must_be_in_order() -> None:
    with pytest.raises(ValueError, match="must be at most group"):
        GroupConfig(group_min_session_timeout_ms=7000, group_max_session_timeout_ms=6000)


def test_options_are_looked_up_by_kafkas_names() -> None:
    config = GroupConfig.from_options({"group.max.size": 7, "offsets.retention.minutes": None})
    assert (config.group_max_size, config.offsets_retention_ms) == (7, 10_080 * 60_000)


def test_the_brokers_option_for_restarted_static_members_reaches_the_coordinator() -> None:
    """R1: the option was praised in a decision and refused by the broker."""
    given = BrokerConfig({"partita.rebalance.on.static.change": "true"})
    assert GroupConfig.from_options(given).partita_rebalance_on_static_change
    assert not GroupConfig.from_options(BrokerConfig()).partita_rebalance_on_static_change
