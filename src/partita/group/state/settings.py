"""Settings that a group may have of its own. (Kafka: GroupConfig)"""

from __future__ import annotations

from dataclasses import fields
from functools import cache

from partita.group.config import GroupConfig
from partita.group.state.turn import Turn

_FIELDS = frozenset(field.name for field in fields(GroupConfig))


def in_force(turn: Turn, group_id: str, name: str) -> int:
    """Return a setting such as "share.session.timeout.ms": the group's own value, else the broker's.

    It is held within the broker's bounds, which may have changed since the group got its own.
    """
    config = turn.state.config
    usual, low, high = _fields(name)
    value = turn.state.group_setting(group_id, name, getattr(config, usual))
    if high in _FIELDS:
        value = min(value, getattr(config, high))
    return max(value, getattr(config, low)) if low in _FIELDS else value


@cache
def _fields(name: str) -> tuple[str, str, str]:
    """The fields of the broker's value and its bounds: x.y has group_x_y, group_x_min_y and group_x_max_y."""
    kind, _, rest = name.replace(".", "_").partition("_")
    bounded = rest.removeprefix("num_")
    return f"group_{kind}_{rest}", f"group_{kind}_min_{bounded}", f"group_{kind}_max_{bounded}"
