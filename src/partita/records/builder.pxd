# The types of builder.py when Cython compiles it. Nothing here is needed to run it uncompiled.

import cython

from partita.records.row_packing cimport Cells, Output, record_size, varint_size

cdef list _ONE_BYTE
cdef list _VARINTS
cdef bytes _ZERO, _NULL
cdef object _INT64_LIMIT
cdef Py_ssize_t _ROOM_AT_FIRST


cdef bytes _size(object value)

@cython.locals(
    delta=bytes, place=bytes, key_size=bytes, value_size=bytes, more=bytes, size=cython.Py_ssize_t
)
cpdef bytes encode_record(object offset_delta, object timestamp_delta, object key, object value, object headers=*)


cdef class BatchBuilder:
    cdef public object codec, level
    cdef public long long max_timestamp
    cdef public Py_ssize_t max_bytes, records_count, size_in_bytes
    cdef long long _base_timestamp
    cdef Output _out

    @cython.locals(
        more=bytes, count=cython.Py_ssize_t, size=cython.Py_ssize_t, rest=cython.Py_ssize_t,
        key_size=cython.Py_ssize_t, value_size=cython.Py_ssize_t, delta=cython.longlong, out=Output,
    )
    cpdef bint append(self, long long timestamp, object key, object value, object headers=*) except -1

    @cython.locals(count=cython.Py_ssize_t, size=cython.Py_ssize_t, rest=cython.Py_ssize_t, delta=cython.longlong)
    cdef bint append_row(
        self, long long timestamp, Cells keys, Cells values, Cells headers, Py_ssize_t row
    ) except -1

    cdef void _count(self, long long timestamp, Py_ssize_t size)
