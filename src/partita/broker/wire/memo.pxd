# The types of memo.py when Cython compiles it. Nothing here is needed to run it uncompiled.

import cython


cdef class Recall:
    cdef object __weakref__
    cdef object _memo, _pause
    cdef dict _known

    @cython.locals(known=tuple, around=tuple, code=cython.int)
    cpdef object reply(self, bytes received)

    @cython.locals(
        data="const unsigned char*", end=cython.Py_ssize_t, stop=cython.Py_ssize_t, size=cython.longlong, known=tuple,
        around=tuple, head=bytes, tail=bytes, before=object, after=object, times=cython.Py_ssize_t, code=cython.int,
    )
    cpdef Py_ssize_t replies(self, bytes received, Py_ssize_t start, list out) except -1
