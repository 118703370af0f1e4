# The types of csv_rows.py when Cython compiles it. Nothing here is needed to run it uncompiled.

import cython

from partita.records.typed.json_rows cimport Field, JsonRows

cdef int _BOOLEAN, _WHOLE, _REAL, _DECIMAL, _TEXT, _BINARY, _DATE


@cython.final
cdef class CsvRows:
    cdef public Field root
    cdef public list faults
    cdef JsonRows values
    cdef Py_ssize_t pos, end, begin, stop
    cdef int separator
    cdef bint is_plain
    cdef object rare
    cdef bytes copy

    @cython.locals(values=JsonRows, row=cython.Py_ssize_t, at=cython.Py_ssize_t)
    cpdef int read(
        self,
        const unsigned char[::1] data,
        const int[::1] offsets,
        const unsigned char[::1] nulls,
        Py_ssize_t first,
        Py_ssize_t count,
    ) except -1

    @cython.locals(fields=list, wanted=cython.Py_ssize_t, found=cython.Py_ssize_t)
    cdef object read_record(self)

    @cython.locals(start=cython.Py_ssize_t, stop=cython.Py_ssize_t)
    cdef int find_cell(self) except -1

    @cython.locals(
        data="const unsigned char*", at=cython.Py_ssize_t, end=cython.Py_ssize_t, marks=cython.int, byte=cython.int,
        has_escape=cython.bint,
    )
    cdef void find_bare(self) noexcept

    @cython.locals(
        data="const unsigned char*", at=cython.Py_ssize_t, end=cython.Py_ssize_t, marks=cython.int, byte=cython.int,
        has_escape=cython.bint,
    )
    cdef bint find_quoted(self) noexcept

    @cython.locals(values=JsonRows, kind=cython.int, done=cython.int)
    cdef int put_cell(self, Field field) except -1

    @cython.locals(values=JsonRows, byte=cython.int)
    cdef int put_number(self, Field field) except -2

    @cython.locals(values=JsonRows)
    cdef int put_rare(self, Field field, bytes raw) except -1
