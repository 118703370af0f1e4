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

    @cython.locals(pos=cython.Py_ssize_t, byte=cython.longlong, zigzag=cython.longlong)
    cdef long long varint(self, int bits) noexcept

    @cython.locals(
        data=cython.p_const_uchar,
        pos=cython.Py_ssize_t,
        value=cython.ulonglong,
        shift=cython.int,
        byte=cython.ulonglong,
        zigzag=cython.longlong,
    )
    cdef long long long_varint(self, int bits) noexcept

    @cython.locals(size=cython.longlong)
    cdef bint advance(self) noexcept

    cdef bint advance_header(self) noexcept
    cdef bint finish(self) noexcept
    cdef bint fail(self, str what, long long found) noexcept


cdef long long wrapped(long long value) noexcept
