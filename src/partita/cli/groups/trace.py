"""`partita groups trace`: each request of a group and its answer, as lines and as a sequence chart."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import click

from partita.cli.groups.control_port import ControlPort
from partita.cli.groups.exchanges import EVENTS, TRACED, Step, chart, line, step_of
from partita.cli.terminal import say
from partita.cli.variables import NumberRange, token_option
from partita.wording import count

LOOK_EVERY_S = 0.2


@click.command()
@click.argument("group_id", metavar="GROUP")
@click.option(
    "--admin-port", type=click.IntRange(1, 65535), required=True, help="The --admin-port of a Partita broker."
)
@token_option
@click.option("--svg", type=click.Path(dir_okay=False, path_type=Path), help="Write a sequence chart to this file.")
@click.option("--max", "-n", "limit", type=click.IntRange(min=1), help="Stop after this many requests and answers.")
@click.option("--seconds", type=NumberRange(min=0.1), help="Stop after this time.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per request or answer.")
def trace(
    group_id: str,
    admin_port: int,
    admin_token: str | None,
    svg: Path | None,
    limit: int | None,
    seconds: float | None,
    as_json: bool,
) -> None:
    """Show each request that members of GROUP send and each answer, with member, generation and the state after it.

    Requests of partita's own commands and dashboard are left out.

    Works on a Partita broker that was started with --admin-port. Ends with Ctrl-C, --max or --seconds.
    """
    port = ControlPort(admin_port, admin_token)
    for _ in port.new_notes():
        pass  # what was before
    port.call("trace_group", group_id=group_id)
    steps: list[Step] = []
    until = None if seconds is None else time.monotonic() + seconds
    try:
        while (until is None or time.monotonic() < until) and (limit is None or len(steps) < limit):
            _show_new(port, group_id, steps, limit, as_json)
            time.sleep(LOOK_EVERY_S)
    except KeyboardInterrupt:
        pass  # the usual way to end it
    finally:
        port.call("untrace_group", group_id=group_id)
    if svg is not None:
        svg.write_text(chart(group_id, steps), encoding="utf-8")
        say(f"wrote {count(len(steps), 'step')} to {svg}", err=True)


def _show_new(port: ControlPort, group_id: str, steps: list[Step], limit: int | None, as_json: bool) -> None:
    for note in port.new_notes():
        if note["note"] not in TRACED | EVENTS or note["group_id"] != group_id or len(steps) == limit:
            continue
        step = step_of(note)
        steps.append(step)
        say(json.dumps(note) if as_json else line(step, steps[0].wall_ms))
    sys.stdout.flush()
