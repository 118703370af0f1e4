# The types of accumulator.py when Cython compiles it. Nothing here is needed to run it uncompiled.

cdef class Accumulator:
    cdef public dict queues
    cdef public Py_ssize_t used_bytes
    cdef public object flushes, is_short_of_memory, is_completing
    cdef object _config
