"""The control endpoint of a Partita broker, as the commands use it: notes and verbs over loopback."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import click

from partita.cli.variables import TOKEN_VARIABLE

TIMEOUT_S = 5


class ControlPort:
    """The endpoint at a port of this machine. Calls raise ClickException with advice on starting the broker."""

    def __init__(self, port: int, token: str | None = None) -> None:
        self._port = port
        self._token = token or ""
        self._next_note = 0

    def new_notes(self) -> Iterator[dict[str, Any]]:
        """The notes that came since the last call; first, all that are kept."""
        for line in self._ask(f"/notes?since={self._next_note}").splitlines():
            if line.strip():
                note = json.loads(line)
                self._next_note = note["seq"] + 1
                yield note

    def call(self, verb: str, **arguments: Any) -> Any:
        """Call a control verb; return its result."""
        return json.loads(self._ask(f"/control/{verb}", json.dumps(arguments).encode()))["result"]

    def _ask(self, path: str, body: bytes | None = None) -> bytes:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}{path}", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                content: bytes = answer.read()
                return content
        except urllib.error.HTTPError as error:
            raise click.ClickException(_refusal(error)) from error
        except (urllib.error.URLError, OSError) as error:
            raise click.ClickException(
                f"no control endpoint at port {self._port} ({error}); start the broker with --admin-port {self._port}"
            ) from error


def _refusal(error: urllib.error.HTTPError) -> str:
    if error.code == HTTPStatus.UNAUTHORIZED:
        return (
            "the control endpoint asks for the token that the broker printed at its start; "
            f"give it with --admin-token or {TOKEN_VARIABLE}"
        )
    return f"the control endpoint answered {error.code}: {error.read(1000).decode(errors='replace').strip()}"
