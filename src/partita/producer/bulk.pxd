# The types of bulk.py when Cython compiles it. Nothing here is needed to run it uncompiled.

import cython

from partita.producer.accumulator cimport Accumulator
from partita.producer.partitioner cimport StickyPartitioner
from partita.records.builder cimport BatchBuilder
from partita.records.row_packing cimport Cells

cdef Py_ssize_t _OVERHEAD


@cython.final
cdef class Columns:
    cdef Cells keys, values, headers
    cdef const long long[::1] times
    cdef const int[::1] partitions
    cdef readonly Py_ssize_t rows


@cython.final
cdef class RowsIn:
    cdef object _core, _guard, _wall_ns, _mono
    cdef bint _ignores_keys
    cdef Py_ssize_t _room, _size_max

    cpdef Py_ssize_t add(self, str topic, Columns columns, Py_ssize_t begin, object places, list homes) except -1

    @cython.locals(
        accumulator=Accumulator, where="long long[::1]", partitions=cython.Py_ssize_t, version=cython.longlong,
        now_ms=cython.longlong, sticky=StickyPartitioner, batches=list, numbers=list, row=cython.Py_ssize_t,
        key_size=cython.Py_ssize_t, size=cython.Py_ssize_t, partition=cython.Py_ssize_t, builder=BatchBuilder,
        before=cython.Py_ssize_t, moment=cython.longlong, number=cython.longlong, waiting=cython.Py_ssize_t,
    )
    cdef Py_ssize_t _take(self, str topic, Columns columns, Py_ssize_t begin, object places, list homes) except -1
