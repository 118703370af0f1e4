# The types of direct.py when Cython compiles it. Nothing here is needed to run it uncompiled.

import cython

from partita.producer.accumulator cimport Accumulator
from partita.producer.delivery cimport Delivery
from partita.producer.partitioner cimport StickyPartitioner, partition_for_key
from partita.records.builder cimport BatchBuilder

cdef Py_ssize_t _OVERHEAD


@cython.final
cdef class DirectSend:
    cdef object _core, _guard, _make, _owner, _view, _wall_ns, _full
    cdef Accumulator _accumulator
    cdef dict _queues, _sticky, _blocked
    cdef bint _is_full, _is_off, _ignores_keys
    cdef Py_ssize_t _room, _size_max, _batch_size

    @cython.locals(timestamp=cython.longlong, delivery=Delivery, is_full=cython.bint)
    cpdef Delivery add(self, object topic, object value, object key)

    @cython.locals(
        sticky=StickyPartitioner, builder=BatchBuilder, delivery=Delivery, used=cython.Py_ssize_t, accumulator=Accumulator,
        key_size=cython.Py_ssize_t, value_size=cython.Py_ssize_t, size=cython.Py_ssize_t, before=cython.Py_ssize_t,
        partition=cython.Py_ssize_t,
    )
    cdef Delivery _place(self, str topic, bytes key, bytes value, long long timestamp)
