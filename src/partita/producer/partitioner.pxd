# The types of partitioner.py when Cython compiles it. Nothing here is needed to run it uncompiled.

import cython

cdef unsigned int _M, _SEED, _MASK


@cython.locals(data="const unsigned char[::1]", length=cython.Py_ssize_t, at=cython.Py_ssize_t, h=cython.uint, k=cython.uint)
cpdef unsigned int murmur2(object key)

cpdef Py_ssize_t partition_for_key(object key, Py_ssize_t partition_count)


cdef class StickyPartitioner:
    cdef public Py_ssize_t batch_size, partition, sent_bytes
    cdef public long long version
    cdef object _draw

    cpdef Py_ssize_t current(self, long long version)

    cpdef sent(self, Py_ssize_t partition, Py_ssize_t size_in_bytes)
