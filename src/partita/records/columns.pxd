# The types of columns.py when Cython compiles it. Nothing here is needed to run it uncompiled.

import cython

from partita.records.scanner cimport RecordScanner, wrapped

cdef long long _MAX_SCALED


cdef class BytesColumn:
    cdef int[::1] offsets
    cdef unsigned char[::1] valid
    cdef unsigned char[::1] written
    cdef public Py_ssize_t rows, size, null_count

    @cython.locals(mask=cython.int)
    cdef void put(self, RecordScanner scanner, Py_ssize_t at, long long size) noexcept

    cdef void forget(self, Py_ssize_t rows) noexcept


cdef class ColumnWriter(RecordScanner):
    cdef BytesColumn keys, values, header_keys, header_values
    cdef public Py_ssize_t rows, headerless_count
    cdef public long long next_offset
    cdef bint with_headers
    cdef int scale
    cdef long long[::1] offsets
    cdef long long[::1] timestamps
    cdef int[::1] timestamp_types
    cdef int[::1] epochs
    cdef int[::1] header_offsets
    cdef unsigned char[::1] header_valid

    @cython.locals(offset=cython.longlong, timestamp=cython.longlong, row=cython.Py_ssize_t)
    cpdef void append(
        self,
        object payload,
        Py_ssize_t count,
        long long base_offset,
        long long base_timestamp,
        int timestamp_type,
        int epoch,
        long long first,
        long long end,
    )

    cdef long long scaled(self, long long timestamp_ms) noexcept

    @cython.locals(mask=cython.int)
    cdef void end_row(self) noexcept

    @cython.locals(left=cython.longlong)
    cdef bint skip_headers(self) noexcept

    @cython.locals(left=cython.longlong, before=cython.Py_ssize_t)
    cdef bint put_headers(self) noexcept


@cython.locals(value=cython.int, index=cython.Py_ssize_t)
cpdef void fill_offsets(int[::1] offsets, Py_ssize_t row, Py_ssize_t rows, int step)
