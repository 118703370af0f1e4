# The types of repeats.py when Cython compiles it. Nothing here is needed to run it uncompiled.

import cython

@cython.locals(
    data="const unsigned char*", end=cython.Py_ssize_t, stop=cython.Py_ssize_t, size=cython.longlong, parts=tuple,
)
cpdef Py_ssize_t answer_repeats(bytes received, Py_ssize_t start, dict memo, list out) except -1
