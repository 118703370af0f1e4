# The types of columns.py when Cython compiles it. Nothing here is needed to run it uncompiled.

import cython

from partita.records.scanner cimport RecordScanner, wrapped

cdef long long _MAX_SCALED, _MAX_BASE
cdef Py_ssize_t _HEADER_SIZE, _MIN_RECORD_SIZE
cdef int _SPECIAL, _APPEND_TIME


@cython.locals(value=cython.longlong, index=cython.Py_ssize_t)
cdef long long number(const unsigned char[::1] view, Py_ssize_t at, int width) noexcept


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
    cdef public Py_ssize_t rows, headerless_count, noted
    cdef public list runs
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

    @cython.locals(
        view="const unsigned char[::1]",
        size=cython.Py_ssize_t,
        following=cython.Py_ssize_t,
        length=cython.longlong,
        base=cython.longlong,
        delta=cython.longlong,
        wanted=cython.longlong,
        count=cython.longlong,
        attributes=cython.int,
        is_append_time=cython.bint,
        is_open=cython.bint,
    )
    cpdef Py_ssize_t append_plain(
        self, object answer, Py_ssize_t pos, long long first, long long end, object crc32c, bint skips_producers
    ) except -1

    @cython.locals(before=cython.Py_ssize_t)
    cdef bint append_one(
        self, long long base_offset, long long timestamp, bint is_append_time, long long first, long long end
    ) except -1

    @cython.locals(keys=BytesColumn, values=BytesColumn)
    cdef bint has_room(self, long long rows, Py_ssize_t size)

    @cython.locals(rows=cython.Py_ssize_t)
    cpdef note_run(self, int timestamp_type, int leader_epoch)

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
