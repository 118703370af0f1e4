# The types of json_text.py when Cython compiles it. Nothing here is needed to run it uncompiled.

import cython

cdef int _DEPTH_MAX, _DIGITS_MAX
cdef long long _POWER_MAX
cdef bytes _ESCAPES
cdef const unsigned char[::1] _MEANT


@cython.locals(
    first=cython.int, size=cython.int, second=cython.int, least=cython.int, most=cython.int, index=cython.Py_ssize_t
)
cdef int continuation(const unsigned char* text, Py_ssize_t at, Py_ssize_t end) noexcept

@cython.locals(found=cython.int, index=cython.Py_ssize_t, byte=cython.int)
cdef int unit(const unsigned char* text, Py_ssize_t at) noexcept

@cython.locals(size=cython.int, index=cython.Py_ssize_t)
cdef Py_ssize_t put_code(unsigned char* text, Py_ssize_t at, int code) noexcept


cdef class JsonText:
    cdef const unsigned char* data
    cdef Py_ssize_t pos, end, start, begin, stop
    cdef bint has_escape, has_high, is_negative, is_real, is_long
    cdef long long mantissa, exponent
    cdef int digits
    cdef unsigned char[::1] brackets

    cdef int open(self, const unsigned char[::1] data) except -1

    cdef object broken(self)

    @cython.final
    @cython.locals(byte=cython.int)
    cdef void skip_space(self) noexcept

    @cython.final
    cdef int next_byte(self) noexcept

    @cython.final
    @cython.locals(byte=cython.int)
    cdef int read_key(self) except -1

    @cython.final
    @cython.locals(depth=cython.Py_ssize_t, byte=cython.int)
    cdef int skip_value(self) except -1

    @cython.final
    @cython.locals(byte=cython.int)
    cdef Py_ssize_t skip_behind_value(self, Py_ssize_t depth) except -2

    @cython.final
    cdef int skip_name(self) except -1

    @cython.final
    @cython.locals(before=cython.Py_ssize_t, begin=cython.Py_ssize_t, found=cython.bint)
    cdef int skip_word(self, int byte) except -1

    @cython.final
    @cython.locals(index=cython.Py_ssize_t)
    cdef bint is_word(self, const unsigned char* word, Py_ssize_t size) noexcept

    @cython.final
    cdef bint find_odd_number(self) noexcept

    @cython.final
    @cython.locals(
        at=cython.Py_ssize_t, data="const unsigned char*", end=cython.Py_ssize_t, high=cython.int, byte=cython.int,
        size=cython.Py_ssize_t,
    )
    cdef int find_string(self, int quote) except -1

    @cython.final
    @cython.locals(byte=cython.uchar, index=cython.Py_ssize_t)
    cdef Py_ssize_t escape_size(self, Py_ssize_t at) except -1

    @cython.final
    @cython.locals(out=cython.Py_ssize_t, code=cython.int, low=cython.int, size=cython.int, _=cython.int)
    cdef Py_ssize_t resolve(self, unsigned char* text, Py_ssize_t at, Py_ssize_t end) noexcept

    @cython.final
    @cython.locals(at=cython.Py_ssize_t, first=cython.Py_ssize_t)
    cdef bint find_number(self) noexcept

    @cython.final
    @cython.locals(mantissa=cython.longlong, digit=cython.int)
    cdef Py_ssize_t find_digits(self, Py_ssize_t at, int places) noexcept

    @cython.final
    @cython.locals(at=cython.Py_ssize_t, is_minus=cython.bint, first=cython.Py_ssize_t, power=cython.longlong)
    cdef bint find_power(self) noexcept
