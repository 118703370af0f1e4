"""Member ids that the coordinator generates for KIP-848 groups: 22 characters, as Kafka's Uuid prints."""

from __future__ import annotations

from base64 import urlsafe_b64encode

from partita.group.state.turn import Turn

_UUID_CHARACTERS = 36


def bare_member_id(turn: Turn) -> str:
    """Return a new id without client id prefix: its UUID bytes in base64; an id without a UUID is kept."""
    made = turn.state.new_member_id("")
    try:
        number = bytes.fromhex(made[-_UUID_CHARACTERS:].replace("-", ""))
    except ValueError:
        return made
    return urlsafe_b64encode(number).decode().rstrip("=")
