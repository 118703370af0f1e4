# The types of delivery.py when Cython compiles it. Nothing here is needed to run it uncompiled.

cdef class Delivery:
    cdef public object record, owner, batch, error, own_callbacks
    cdef public long long timestamp
    cdef public Py_ssize_t index, key_size, value_size
    cdef public bint is_heard
