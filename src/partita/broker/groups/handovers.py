"""The coordinators' handovers to the next start of the broker, as the text of one small file.

An orderly stop writes it, the next start reads it once. Silences are in milliseconds. (Museum 73: restarts must not
keep dead members alive.)
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from partita.group.contract import Handover


def encode_handovers(handovers: Mapping[int, Handover | None]) -> bytes:
    """The handovers by partition of `__consumer_offsets`; None stands for a shard that did not end in order."""
    return json.dumps({str(index): _plain(handover) for index, handover in handovers.items()}).encode()


def decode_handovers(content: bytes) -> dict[int, Handover | None]:
    """Return the argument of `encode_handovers`. Raises ValueError for any other content."""
    try:
        return {int(index): _handover(plain) for index, plain in json.loads(content).items()}
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"these are no handovers: {error}") from error


def _plain(handover: Handover | None) -> dict[str, object] | None:
    if handover is None:
        return None
    silences = [[group_id, member_id, ms] for (group_id, member_id), ms in handover.silences.items()]
    return {"silences": silences, "generations": dict(handover.generations)}


def _handover(plain: dict[str, object] | None) -> Handover | None:
    if plain is None:
        return None
    silences, generations = plain["silences"], plain["generations"]
    if not isinstance(silences, list) or not isinstance(generations, dict):
        raise TypeError("silences are a list, generations an object")
    return Handover(
        {(str(group_id), str(member_id)): int(ms) for group_id, member_id, ms in silences},
        {str(group_id): int(generation) for group_id, generation in generations.items()},
    )
