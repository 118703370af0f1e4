"""`partita broker`: run a broker until SIGTERM or Ctrl-C.

Says at start where it listens, where the data is, what survives what, and what differs from Kafka. What is in the way
of a start is one line and exit code 2.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys

import click
from click.core import ParameterSource

from partita.broker.launch import BrokerSettings, StartError, banner, new_event_loop, start_cluster

DEFAULT_PORT = 9092
GARBAGE_OBJECTS = 20_000
"""How many new objects the garbage collector waits for: requests leave no cycles, and parked ones are no garbage."""


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True, help="0: a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; see also --set listeners.")
@click.option("--data-dir", type=click.Path(file_okay=False), help="Keep topics and groups in this directory.")
@click.option("--memory", is_flag=True, help="Keep everything in memory (the default without --data-dir).")
@click.option(
    "--durability",
    type=click.Choice(["memory", "os", "sync"]),
    help="When a write is acknowledged: os = handed to the system (survives a kill), sync = on the disk.",
)
@click.option("--nodes", type=click.IntRange(1, 32), default=1, show_default=True, help="Nodes over one store.")
@click.option("--kafka-defaults", is_flag=True, help="Kafka's defaults where Partita's differ.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A broker option by Kafka's name.")
@click.option("--notes", "notes_file", type=click.Path(dir_okay=False), help="Append what happens, as JSON lines.")
@click.option("--admin-port", type=click.IntRange(0, 65535), help="Serve the control endpoint on this loopback port.")
def broker(
    port: int,
    host: str,
    data_dir: str | None,
    memory: bool,
    durability: str | None,
    nodes: int,
    kafka_defaults: bool,
    settings: tuple[str, ...],
    notes_file: str | None,
    admin_port: int | None,
) -> None:
    """Run a broker that any Kafka client can use. Stops in order on SIGTERM or Ctrl-C."""
    if memory and data_dir is not None:
        _refuse("--memory and --data-dir exclude each other")
    options: dict[str, object] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            _refuse(f"--set wants NAME=VALUE, not {setting}")
        options[name.strip()] = value
    if "listeners" in options and any(_was_given(name) for name in ("host", "port")):
        _refuse("--set listeners takes the place of --host and --port")
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    chosen = BrokerSettings(host, port, data_dir, durability, nodes, kafka_defaults, notes_file, admin_port, options)
    loop = new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(_serve(chosen))
    except StartError as error:
        _refuse(str(error))


def _was_given(name: str) -> bool:
    return click.get_current_context().get_parameter_source(name) is not ParameterSource.DEFAULT


async def _serve(settings: BrokerSettings) -> None:
    cluster = await start_cluster(settings)
    stopping = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        cluster.loop.add_signal_handler(signum, stopping.set)
    for line in banner(cluster):
        click.echo(line)
    sys.stdout.flush()
    gc.freeze()  # what is loaded stays: no collection needs to look at it again
    gc.set_threshold(GARBAGE_OBJECTS)
    await stopping.wait()
    await cluster.stop()
    click.echo("stopped")


def _refuse(reason: str) -> None:
    click.echo(f"partita broker: {reason}", err=True)
    sys.exit(2)
