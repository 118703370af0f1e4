"""`partita backup`: copy a broker's data directory while the broker runs or is stopped."""

from __future__ import annotations

import sys

import click

from partita.broker.storage.backup import back_up
from partita.broker.storage.data_dir import DataDirectoryError
from partita.cli.connecting import json_option
from partita.cli.terminal import complain, print_json, say


@click.command()
@click.argument("data_dir", type=click.Path(exists=True, file_okay=False))
@click.argument("target", type=click.Path())
@json_option
def backup(data_dir: str, target: str, as_json: bool) -> None:
    """Copy the data directory DATA_DIR of a broker to the new folder TARGET.

    The broker may run meanwhile; transactions that are open are aborted in the copy. To restore, start a broker with
    --data-dir TARGET.
    """
    try:
        copied = back_up(data_dir, target)
    except DataDirectoryError as error:
        complain(str(error), command="partita backup")
        sys.exit(1)
    found = {"topics": copied.topics, "partitions": copied.partitions, "bytes": copied.bytes, "clean": copied.is_clean}
    if as_json:
        print_json(found)
        return
    how = "of a stopped broker" if copied.is_clean else "of a running broker: the next start checks the logs"
    say(f"{copied.topics} topics, {copied.partitions} partitions, {copied.bytes} bytes, {how}")
