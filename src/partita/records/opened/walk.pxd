# The types of walk.py when Cython compiles it. Nothing here is needed to run it uncompiled.

import cython

from partita.records.scanner cimport RecordScanner, wrapped

cdef Py_ssize_t REJECTED_MAX


@cython.final
cdef class RecordWalk(RecordScanner):
    cdef int[::1] places
    cdef public Py_ssize_t rejected_count, keyless_count, mistimed_count
    cdef public long long max_timestamp, found_offset, found_timestamp

    cpdef void check(
        self,
        object payload,
        Py_ssize_t count,
        long long base_timestamp,
        bint needs_key,
        bint in_order,
        long long earliest,
        long long latest,
    )

    @cython.locals(index=cython.int, place=cython.int, has_key=cython.bint, timestamp=cython.longlong)
    cdef void check_all(
        self, long long base_timestamp, bint needs_key, bint in_order, long long earliest, long long latest
    ) noexcept nogil

    cpdef bint find(
        self,
        object payload,
        Py_ssize_t count,
        long long base_offset,
        long long base_timestamp,
        long long timestamp,
        long long from_offset,
    ) except -1

    @cython.locals(offset=cython.longlong, found=cython.longlong)
    cdef void find_first(
        self, long long base_offset, long long base_timestamp, long long timestamp, long long from_offset
    ) noexcept nogil

    @cython.locals(left=cython.longlong)
    cdef bint pass_headers(self) noexcept nogil
