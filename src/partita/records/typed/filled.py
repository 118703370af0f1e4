"""The columns that a decoder fills for an Arrow type, and the Arrow arrays that they become."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types as kinds

from partita.records.typed.cells import Cells, Listed, Real, Struct, Text, Whole, Wide


def cells_of(kind: pa.DataType) -> Cells:
    """An empty column for values of this type."""
    if kinds.is_struct(kind):
        return Struct([cells_of(field.type) for field in kind])
    if kinds.is_map(kind):
        return Listed(Struct([cells_of(kind.key_type), cells_of(kind.item_type)]))
    if kinds.is_list(kind):
        return Listed(cells_of(kind.value_type))
    if kinds.is_decimal(kind):
        return Wide()
    if kinds.is_floating(kind):
        return Real()
    return Text() if kinds.is_string(kind) or kinds.is_binary(kind) or kinds.is_fixed_size_binary(kind) else Whole()


def array_of(cells: Cells, kind: pa.DataType) -> pa.Array:
    """The column as an array. Its memory is the array's from now on; `begin` gives the column other memory."""
    rows, bits = cells.rows, None
    if cells.null_count:
        assert cells.bits is not None, "a column with rows has begun"
        bits = cells.bits.cut((rows + 7) // 8)
    match cells:
        case Struct():
            children = [array_of(one, field.type) for one, field in zip(cells.columns, kind, strict=True)]
            return pa.Array.from_buffers(kind, rows, [bits], children=children)
        case Listed():
            inner = pa.struct([kind.key_field, kind.item_field]) if kinds.is_map(kind) else kind.value_type
            return pa.Array.from_buffers(
                kind, rows, [bits, cells.place.cut(rows + 1)], children=[array_of(cells.item, inner)]
            )
        case Text():
            buffers = [bits, cells.place.cut(rows + 1), cells.memory.cut(cells.size)]
            is_fixed = kinds.is_fixed_size_binary(kind)
            found = pa.Array.from_buffers(pa.binary() if is_fixed else kind, rows, buffers)
            return found.cast(kind) if is_fixed else found
        case Wide():
            return pa.Array.from_buffers(kind, rows, [bits, cells.memory.cut(2 * rows)])
        case Real():
            return pa.Array.from_buffers(pa.float64(), rows, [bits, cells.memory.cut(rows)]).cast(kind, safe=False)
        case Whole():
            return _whole(pa.Array.from_buffers(pa.int64(), rows, [bits, cells.memory.cut(rows)]), kind)
    raise TypeError(f"no column of {kind}")


def _whole(numbers: pa.Array, kind: pa.DataType) -> pa.Array:
    """Unsafe casts: a null may have any bits below it."""
    if kinds.is_timestamp(kind) or kinds.is_time64(kind):
        return numbers.view(kind)
    if kinds.is_date32(kind) or kinds.is_time32(kind):
        return numbers.cast(pa.int32(), safe=False).view(kind)
    return numbers.cast(kind, safe=False)
