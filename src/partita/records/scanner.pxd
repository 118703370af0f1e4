# The types of scanner.py when Cython compiles it. Nothing here is needed to run it uncompiled.

import cython

cdef unsigned long long _MASK_32


cdef class RecordScanner:
    cdef const unsigned char* data
    cdef object owner
    cdef public object fault
    cdef Py_ssize_t pos, end, left, record_end, key_at, value_at
    cdef long long timestamp_delta, offset_delta, key_size, value_size, header_count

    @cython.locals(view="const unsigned char[::1]")
    cdef open(self, object payload, Py_ssize_t count)

    @cython.final
    @cython.locals(pos=cython.Py_ssize_t, byte=cython.longlong, zigzag=cython.longlong)
    cdef long long varint(self, int bits) noexcept nogil

    @cython.final
    @cython.locals(
        data=cython.p_const_uchar,
        pos=cython.Py_ssize_t,
        value=cython.ulonglong,
        shift=cython.int,
        byte=cython.ulonglong,
        zigzag=cython.longlong,
    )
    cdef long long long_varint(self, int bits) noexcept nogil

    @cython.locals(size=cython.longlong)
    cdef bint advance(self) noexcept nogil

    cdef bint advance_header(self) noexcept nogil
    cdef bint finish(self) noexcept nogil
    cdef bint fail(self, const char* what, long long found) noexcept with gil
    cdef void fail_varint(self, int bits) noexcept with gil


cdef long long wrapped(long long value) noexcept nogil
