# The C types of writer.py, for its compiled build.
cimport cython

cdef class Writer:
    cdef public bytearray buf
    cdef list _chunks
    cdef bytearray _first
    cdef object _pause
    cdef Py_ssize_t _elements_left

    cdef bytes _encoded(self, str value)
    cpdef string(self, value)
    cpdef compact_string(self, value)
    cpdef bytes(self, value)
    cpdef compact_bytes(self, value)
    cpdef uvarint(self, unsigned long long value)
    @cython.locals(size=Py_ssize_t, first=bytearray)
    cpdef list framed(self)
    cpdef each(self, elements)
    cdef _payload(self, value)
