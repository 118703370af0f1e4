"""Ports for servers whose port has to be chosen before they start."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket

FIRST_PORT, PORT_COUNT = 12_000, 20_000
"""Below 32,768, where Linux begins with the ports that it hands out by itself; other systems begin later."""
_places = itertools.count(os.getpid() * 7_919)  # far apart for the workers of one run


def free_ports(count: int) -> list[int]:
    """Return unused loopback ports that this process has not returned before.

    The system hands none of them out by itself, so nothing takes one while a server starts, or while it is down between
    two runs. Raises OSError if there are not enough.
    """
    found: list[int] = []
    for place in itertools.islice(_places, PORT_COUNT):
        port = FIRST_PORT + place % PORT_COUNT
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            return found
    raise OSError(f"there are no {count} free ports from {FIRST_PORT} on")
