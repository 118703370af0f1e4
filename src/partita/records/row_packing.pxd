# The types of row_packing.py when Cython compiles it. Nothing here is needed to run it uncompiled.

import cython

cdef unsigned int _M
cdef unsigned int _MASK
cdef unsigned int _SEED
cdef Py_ssize_t _HEADER_SIZE
cdef Py_ssize_t _RECORD_OVERHEAD_MAX
cdef Py_ssize_t _HEADER_OVERHEAD_MAX
cdef Py_ssize_t _COUNT_MAX


@cython.final
cdef class Cells:
    cdef const int[::1] offsets
    cdef const unsigned char[::1] data
    cdef const unsigned char[::1] valid
    cdef Py_ssize_t first
    cdef bint has_nulls
    cdef readonly Py_ssize_t rows

    cdef Py_ssize_t begin(self, Py_ssize_t row) noexcept nogil

    @cython.locals(at=cython.Py_ssize_t)
    cdef Py_ssize_t size(self, Py_ssize_t row) noexcept nogil

    @cython.locals(size=cython.Py_ssize_t, begin=cython.Py_ssize_t)
    cdef object get(self, Py_ssize_t row)

    @cython.locals(begin=cython.Py_ssize_t)
    cdef unsigned int hash(self, Py_ssize_t row) noexcept nogil


@cython.final
cdef class Output:
    cdef unsigned char[::1] out
    cdef Py_ssize_t at

    @cython.locals(old="unsigned char[::1]")
    cdef int reserve(self, Py_ssize_t more) except -1

    cdef void put_byte(self, unsigned char byte) noexcept nogil

    @cython.locals(zigzag=cython.ulonglong)
    cdef void put_varint(self, long long number) noexcept nogil

    @cython.locals(source="const unsigned char*")
    cdef void put_bytes(self, bytes data, Py_ssize_t size) noexcept

    @cython.locals(begin=cython.Py_ssize_t)
    cdef void put_cell(self, Cells cells, Py_ssize_t row, Py_ssize_t size) noexcept nogil

    @cython.locals(key_size=cython.Py_ssize_t, value_size=cython.Py_ssize_t, rest=cython.Py_ssize_t)
    cdef void put_row(
        self, Cells keys, Cells values, Cells headers, Py_ssize_t row, long long index, long long delta
    ) noexcept nogil

    cdef object taken(self)


@cython.final
cdef class RowEncoder:
    cdef Cells keys, values, headers
    cdef const long long[::1] times
    cdef const long long[::1] places
    cdef bint has_times
    cdef Output written

    @cython.locals(
        count=cython.Py_ssize_t, index=cython.Py_ssize_t, reach=cython.Py_ssize_t, size=cython.Py_ssize_t, found=list
    )
    cpdef list cuts(self, object places, Py_ssize_t batch_bytes)

    @cython.locals(count=cython.Py_ssize_t, index=cython.Py_ssize_t, room=cython.Py_ssize_t)
    cpdef object encode(self, object places)

    @cython.locals(size=cython.Py_ssize_t)
    cdef Py_ssize_t bound(self, Py_ssize_t row) noexcept nogil

    @cython.locals(index=cython.Py_ssize_t, row=cython.Py_ssize_t, delta=cython.longlong)
    cdef void encode_all(self, Py_ssize_t count) noexcept nogil

    cdef void encode_one(self, Py_ssize_t row, long long index, long long delta) noexcept nogil


cpdef Py_ssize_t record_size(
    long long index, long long delta, Py_ssize_t key_size, Py_ssize_t value_size, Py_ssize_t headers_size
) noexcept nogil


@cython.locals(zigzag=cython.ulonglong, size=cython.Py_ssize_t)
cpdef Py_ssize_t varint_size(long long number) noexcept nogil


@cython.locals(
    bounds="int[::1]",
    room=cython.Py_ssize_t,
    row=cython.Py_ssize_t,
    entry=cython.Py_ssize_t,
    end=cython.Py_ssize_t,
    written=Output,
)
cpdef object encode_header_lists(Cells lists, Cells keys, Cells values, object offsets)


@cython.locals(
    starts="const long long[::1]",
    read="const unsigned char[::1]",
    found="unsigned int[::1]",
    rows=cython.Py_ssize_t,
    row=cython.Py_ssize_t,
)
cpdef hash_all(object offsets, object data, unsigned int seed, object hashes)


@cython.locals(rest=cython.Py_ssize_t, h="unsigned int", k="unsigned int")
cdef unsigned int murmur2_of(
    const unsigned char[::1] read, Py_ssize_t at, Py_ssize_t end, unsigned int seed
) noexcept nogil
