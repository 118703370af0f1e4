# The C types of reader.py, for its compiled build.
cimport cython

cdef class Reader:
    cdef public object buf
    cdef public Py_ssize_t pos
    cdef public Py_ssize_t end
    cdef public object pause
    cdef Py_ssize_t _elements
    cdef bytes _whole

    cpdef Py_ssize_t remaining(self)
    cpdef int int8(self) except? -99
    @cython.locals(high=cython.int, low=cython.int)
    cpdef int int16(self) except? -99
    cpdef int uint16(self) except? -99
    cpdef int int32(self) except? -99
    @cython.locals(byte=cython.uint)
    cpdef long long uvarint(self) except -1
    @cython.locals(byte=cython.uint, shift=cython.int)
    cdef long long _long_uvarint(self, long long value) except -1
    cpdef object take(self, Py_ssize_t size)
    cdef object _own(self, Py_ssize_t size)
    @cython.locals(start=Py_ssize_t, stop=Py_ssize_t, whole=bytes)
    cdef object _text(self, Py_ssize_t size)
    cdef object _replaced(self, raw)
    @cython.locals(start=Py_ssize_t)
    cdef object _view(self, Py_ssize_t size)
    cpdef Py_ssize_t count(self, Py_ssize_t least_size) except -2
    cpdef Py_ssize_t compact_count(self, Py_ssize_t least_size) except -2
    cpdef Py_ssize_t nullable_count(self, Py_ssize_t least_size) except -2
    cpdef Py_ssize_t compact_nullable_count(self, Py_ssize_t least_size) except -2
    cdef Py_ssize_t _bounded(self, Py_ssize_t count, Py_ssize_t least_size) except -2
    cpdef object each(self, Py_ssize_t count)
    cdef object _int32s(self, Py_ssize_t count)
    cpdef tuple tag(self, long long last)
    @cython.locals(count="long long", last="long long")
    cpdef skip_tags(self)
