# The types of columns.py when Cython compiles it. Nothing here is needed to run it uncompiled.

import cython

from partita.records.scanner cimport RecordScanner, wrapped

cdef long long _MAX_SCALED


@cython.final
cdef class BytesColumn:
    cdef int[::1] offsets
    cdef unsigned char[::1] valid
    cdef unsigned char[::1] written
    cdef public Py_ssize_t rows, size, null_count

    cdef void put(self, RecordScanner scanner, Py_ssize_t at, long long size) noexcept nogil

    cdef void forget(self, Py_ssize_t rows) noexcept nogil


@cython.final
cdef class ColumnWriter(RecordScanner):
    cdef BytesColumn keys, values, header_keys, header_values
    cdef public Py_ssize_t rows, headerless_count
    cdef public long long next_offset
    cdef public bint wants_header_room
    cdef bint with_headers, has_header_room
    cdef int scale
    cdef long long[::1] offsets
    cdef long long[::1] timestamps
    cdef int[::1] header_offsets
    cdef unsigned char[::1] header_valid

    cpdef void append(
        self,
        object payload,
        Py_ssize_t count,
        long long base_offset,
        long long base_timestamp,
        bint is_append_time,
        long long first,
        long long end,
    )

    @cython.locals(offset=cython.longlong, row=cython.Py_ssize_t)
    cdef void append_all(
        self, long long base_offset, long long base_timestamp, bint is_append_time, long long first, long long end
    ) noexcept nogil

    cdef long long scaled(self, long long timestamp_ms) noexcept nogil

    cdef void end_headers(self, Py_ssize_t row) noexcept nogil

    @cython.locals(left=cython.longlong)
    cdef bint skip_headers(self) noexcept nogil

    @cython.locals(left=cython.longlong, before=cython.Py_ssize_t)
    cdef bint put_headers(self) noexcept nogil


@cython.locals(value=cython.int, index=cython.Py_ssize_t)
cpdef void fill_offsets(int[::1] offsets, Py_ssize_t row, Py_ssize_t rows, int step)
