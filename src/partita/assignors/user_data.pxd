# The types of user_data.py when Cython compiles it. Nothing here is needed to run it uncompiled.

import cython

@cython.locals(
    end=cython.Py_ssize_t, pos=cython.Py_ssize_t, topics=cython.uint, size=cython.Py_ssize_t, count=cython.uint,
    number=cython.uint, known=cython.longlong, first=cython.longlong, generation=cython.uint, claimed=list,
)
cpdef tuple read_claim(bytes data, dict places)

cdef unsigned int _uint32(const unsigned char* data, Py_ssize_t pos) noexcept
