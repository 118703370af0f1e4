"""Member ids that the coordinator makes for KIP-848 groups: 22 characters, as Kafka's Uuid prints itself."""

from __future__ import annotations

from base64 import urlsafe_b64encode

from partita.group.state.turn import Turn

_UUID_CHARACTERS = 36


def bare_member_id(turn: Turn) -> str:
    """A new id without a client id in front: the bytes of the UUID in it, in base64; an id without one stays."""
    made = turn.state.new_member_id("")
    try:
        number = bytes.fromhex(made[-_UUID_CHARACTERS:].replace("-", ""))
    except ValueError:
        return made
    return urlsafe_b64encode(number).decode().rstrip("=")
