# The types of builder.py when Cython compiles it. Nothing here is needed to run it uncompiled.

import cython

cdef list _ONE_BYTE
cdef list _VARINTS
cdef bytes _ZERO, _NULL
cdef object _INT64_LIMIT


cdef bytes _size(object value)

@cython.locals(
    delta=bytes, place=bytes, key_size=bytes, value_size=bytes, more=bytes, size=cython.Py_ssize_t
)
cpdef bytes encode_record(object offset_delta, object timestamp_delta, object key, object value, object headers=*)


cdef class BatchBuilder:
    cdef public object codec, level, max_timestamp
    cdef public Py_ssize_t max_bytes, records_count, size_in_bytes
    cdef object _base_timestamp
    cdef list _parts

    @cython.locals(record=bytes, count=cython.Py_ssize_t, size=cython.Py_ssize_t)
    cpdef bint append(self, object timestamp, object key, object value, object headers=*)
