"""Which modules are worth compiling, and which of them run compiled here.

Each is a plain Python file that does the same uncompiled; a `.pxd` file beside it may give C types. `setup.py`
reads `COMPILED` from here, so this file must not import anything of the package.
"""

from __future__ import annotations

from importlib.util import find_spec

COMPILED: tuple[str, ...] = (
    "partita.assignors.user_data",
    "partita.broker.wire.memo",
    "partita.group.records.replay_batch",
    "partita.producer.accumulator",
    "partita.producer.bulk",
    "partita.producer.delivery",
    "partita.producer.direct",
    "partita.producer.partitioner",
    "partita.protocol.reader",
    "partita.protocol.writer",
    "partita.records.builder",
    "partita.records.columns",
    "partita.records.decode",
    "partita.records.row_packing",
    "partita.records.scanner",
    "partita.records.opened.walk",
    "partita.records.typed.avro_rows",
    "partita.records.typed.cells",
    "partita.records.typed.csv_rows",
    "partita.records.typed.json_rows",
    "partita.records.typed.json_text",
    "partita.records.typed.proto_rows",
)


def compiled_modules() -> dict[str, bool]:
    """For each module of `COMPILED`: whether it is, or would be, imported from its compiled form."""
    return {name: _is_compiled(name) for name in COMPILED}


def _is_compiled(name: str) -> bool:
    spec = find_spec(name)
    return spec is not None and spec.origin is not None and not spec.origin.endswith(".py")
