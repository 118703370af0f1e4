# The types of decode.py when Cython compiles it. Nothing here is needed to run it uncompiled.

import cython

from partita.records.scanner cimport RecordScanner, wrapped

cdef extern from "Python.h":
    void untrack "PyObject_GC_UnTrack" (object given)


cdef class Record:
    cdef public object topic, key, value, headers
    cdef public int partition, timestamp_type, leader_epoch, serialized_key_size, serialized_value_size
    cdef public long long offset, timestamp


cdef class RecordReader(RecordScanner):
    cdef object topic
    cdef int partition, epoch, timestamp_type
    cdef long long first_offset, first_timestamp, from_offset

    @cython.locals(offset=cython.longlong, room=cython.Py_ssize_t)
    cpdef list take(self, Py_ssize_t limit)

    @cython.locals(record=Record)
    cdef Record record(self, long long offset)

    @cython.locals(left=cython.longlong)
    cdef tuple headers(self)
