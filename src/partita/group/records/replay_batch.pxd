# The types of replay_batch.py when Cython compiles it. Nothing here is needed to run it uncompiled.

import cython

@cython.locals(
    data="const unsigned char*", pos=cython.Py_ssize_t, byte=cython.uint, size=cython.Py_ssize_t, shift=cython.int,
    headers=cython.uint, key=bytes, value=object, first=cython.Py_ssize_t, skipped=cython.int,
)
cdef int _cut(
    bytes body, Py_ssize_t end, Py_ssize_t count, dict latest, list others, bint in_order
) except -1

@cython.locals(data="const unsigned char*", byte=cython.uint, size=cython.Py_ssize_t, shift=cython.int)
cdef Py_ssize_t _skip_headers(bytes body, Py_ssize_t pos, Py_ssize_t end, Py_ssize_t count) except -1

@cython.locals(
    data="const unsigned char*", size=cython.Py_ssize_t, group_end=cython.Py_ssize_t, topic_end=cython.Py_ssize_t,
    number=cython.longlong,
)
cpdef tuple split_key(bytes key)

@cython.locals(
    data="const unsigned char*", size=cython.Py_ssize_t, at=cython.Py_ssize_t, least=cython.Py_ssize_t,
    length=cython.Py_ssize_t, byte=cython.uint, shift=cython.int, version=cython.int,
)
cpdef check_value(bytes value)
