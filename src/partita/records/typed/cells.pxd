# The types of cells.py when Cython compiles it. Nothing here is needed to run it uncompiled.

import cython

cdef long long _TEXT_MAX


cdef class Cells:
    cdef public Py_ssize_t rows, null_count, room
    cdef public object bits
    cdef unsigned char[::1] valid

    cpdef int begin(self, Py_ssize_t room) except -1
    cdef int grow(self) except -1
    cpdef int null(self) except -1
    cpdef int step(self) except -1
    cpdef int forget(self, Py_ssize_t rows) except -1


@cython.final
cdef class Whole(Cells):
    cdef public object memory
    cdef long long[::1] numbers

    cpdef int put(self, long long number) except -1


@cython.final
cdef class Real(Cells):
    cdef public object memory
    cdef double[::1] numbers

    cpdef int put(self, double number) except -1


@cython.final
cdef class Wide(Cells):
    cdef public object memory
    cdef long long[::1] numbers

    cpdef int put(self, long long number) except -1


@cython.final
cdef class Text(Cells):
    cdef public object memory, place
    cdef public Py_ssize_t size
    cdef Py_ssize_t space
    cdef int[::1] offsets
    cdef unsigned char[::1] written

    cdef int widen(self, Py_ssize_t size) except -1
    cdef int put(self, const unsigned char* data, Py_ssize_t at, Py_ssize_t size) except -1
    cdef void cut(self, Py_ssize_t size) noexcept


@cython.final
cdef class Listed(Cells):
    cdef public Cells item
    cdef public object place
    cdef int[::1] offsets


@cython.final
cdef class Struct(Cells):
    cdef public list columns

    @cython.locals(column=Cells)
    cdef int fill_up(self) except -1
