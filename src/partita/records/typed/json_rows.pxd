# The types of json_rows.py when Cython compiles it. Nothing here is needed to run it uncompiled.

import cython

from partita.records.typed.cells cimport Cells, Listed, Real, Struct, Text, Whole, Wide
from partita.records.typed.json_text cimport JsonText

cdef int BOOLEAN, WHOLE, REAL, DECIMAL, TEXT, BINARY, DATE, TIMESTAMP, LOCAL_TIMESTAMP, STRUCT, LIST, MAP
cdef int _BROKEN, _MISFIT, _READ, _DIGITS_MAX
cdef long long _EXACT, _EXACT_32, _SECONDS_MAX
cdef double[::1] _POWERS
cdef long long[::1] _WHOLE_POWERS


@cython.final
cdef class Field:
    cdef public bytes name
    cdef public Py_ssize_t size
    cdef public int kind, precision, scale
    cdef public bint is_small
    cdef public long long min, max
    cdef public Cells cells
    cdef public Whole whole
    cdef public Real real
    cdef public Wide wide
    cdef public Text text, keys
    cdef public Listed listed
    cdef public Struct struct
    cdef public list fields
    cdef public Field item
    cdef public object form, type_name


@cython.final
cdef class JsonRows(JsonText):
    cdef public Field root
    cdef public object zone
    cdef public list faults
    cdef object misfit

    @cython.locals(struct=Struct, row=cython.Py_ssize_t, at=cython.Py_ssize_t)
    cpdef int read(
        self,
        const unsigned char[::1] data,
        const int[::1] offsets,
        const unsigned char[::1] nulls,
        Py_ssize_t first,
        Py_ssize_t count,
    ) except -1

    cdef int read_record(self) except -1

    @cython.locals(
        struct=Struct, row=cython.Py_ssize_t, place=cython.Py_ssize_t, byte=cython.int, found=cython.Py_ssize_t,
        child=Field, done=cython.int,
    )
    cdef int read_struct(self, Field field) except -2

    @cython.locals(
        size=cython.Py_ssize_t, count=cython.Py_ssize_t, step=cython.Py_ssize_t, at=cython.Py_ssize_t, field=Field
    )
    cdef Py_ssize_t field_of(self, list fields, Py_ssize_t place) except -2

    @cython.locals(name="const unsigned char*")
    cdef bint is_name(self, Field field, Py_ssize_t size) noexcept

    cdef Py_ssize_t odd_field(self, list fields) except -2

    @cython.locals(byte=cython.int, begin=cython.Py_ssize_t)
    cdef int read_value(self, Field field) except -2

    @cython.locals(
        listed=Listed, item=Field, before=cython.Py_ssize_t, fits=cython.bint, done=cython.int, byte=cython.int
    )
    cdef int read_list(self, Field field) except -2

    @cython.locals(
        listed=Listed, item=Field, keys=Text, entries=Struct, before=cython.Py_ssize_t, fits=cython.bint,
        done=cython.int, byte=cython.int,
    )
    cdef int read_map(self, Field field) except -2

    @cython.locals(kind=cython.int, number=cython.longlong)
    cdef int put_number(self, Field field) except -2

    @cython.locals(exponent=cython.longlong, real=cython.double)
    cdef int put_real(self, Field field) except -2

    @cython.locals(shift=cython.longlong, number=cython.longlong, divisor=cython.longlong, rest=cython.longlong)
    cdef int put_decimal(self, Field field) except -2

    cdef int put_boolean(self, Field field, int value) except -2

    @cython.locals(kind=cython.int)
    cdef int put_string(self, Field field) except -2

    @cython.locals(size=cython.Py_ssize_t, written="unsigned char*")
    cdef int put_text(self, Text text) except -1

    @cython.locals(high=cython.int, low=cython.int)
    cdef int two(self, Py_ssize_t at) noexcept

    @cython.locals(at=cython.Py_ssize_t, month=cython.int, day=cython.int)
    cdef bint is_date(self) noexcept

    @cython.locals(at=cython.Py_ssize_t, year=cython.longlong, month=cython.longlong)
    cdef long long days(self) noexcept

    @cython.locals(
        at=cython.Py_ssize_t, stop=cython.Py_ssize_t, data="const unsigned char*", size=cython.Py_ssize_t,
        hour=cython.int, minute=cython.int, second=cython.int, has_zone=cython.bint, micros=cython.longlong,
        index=cython.Py_ssize_t, digit=cython.int, seconds=cython.longlong,
    )
    cdef int put_instant(self, Field field) except -2

    cdef int put_odd(self, Field field) except -2

    cdef int put_odd_number(self, Field field) except -2

    cdef int put_odd_string(self, Field field) except -2

    cdef int put_as_text(self, Field field) except -2

    cdef int put_object(self, Field field, object value) except -2

    cdef int misfits(self, Field field) except -2
