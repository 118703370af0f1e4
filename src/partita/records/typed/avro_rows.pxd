# The types of avro_rows.py when Cython compiles it. Nothing here is needed to run it uncompiled.

import cython

from partita.records.typed.cells cimport Cells, Listed, Real, Struct, Text, Whole, Wide

cdef int NULL, BOOLEAN, WHOLE, FLOAT, DOUBLE, TEXT, FIXED, ENUM, ARRAY, MAP, RECORD, UNION, CONSTANT
cdef int _EMPTY_MAX, _DEPTH_MAX, _HEAD


@cython.final
cdef class Node:
    cdef public int kind
    cdef public bint is_int, is_utf8, is_members, is_narrow
    cdef public Cells cells
    cdef public Whole whole
    cdef public Real real
    cdef public Wide wide
    cdef public Text text
    cdef public Listed listed
    cdef public Struct struct
    cdef public list nodes, symbols
    cdef public long long factor
    cdef public Py_ssize_t size
    cdef public object value


@cython.final
cdef class AvroRows:
    cdef public Struct root
    cdef public Node node
    cdef public object learn
    cdef public dict nodes
    cdef public list faults
    cdef object reason
    cdef long long known_id
    cdef int depth
    cdef const unsigned char* data
    cdef Py_ssize_t pos, end, spare

    @cython.locals(root=Struct, row=cython.Py_ssize_t, at=cython.Py_ssize_t, start=cython.Py_ssize_t)
    cpdef int read(
        self,
        const unsigned char[::1] data,
        const int[::1] offsets,
        const unsigned char[::1] nulls,
        Py_ssize_t first,
        Py_ssize_t count,
    ) except -1

    @cython.locals(schema_id=cython.longlong, index=cython.Py_ssize_t)
    cdef object choose(self)

    @cython.locals(value=cython.ulonglong, shift=cython.int, byte=cython.ulonglong)
    cdef long long number(self) noexcept

    @cython.locals(kind=cython.int, size=cython.longlong)
    cdef int read_value(self, Node node) except -1

    @cython.locals(child=Node)
    cdef int read_record(self, Node node) except -1

    @cython.locals(kind=cython.int, place=cython.longlong)
    cdef int read_other(self, Node node) except -1

    @cython.locals(place=cython.longlong, branch=Node)
    cdef int read_union(self, Node node) except -1

    @cython.locals(count=cython.longlong, size=cython.longlong, before=cython.Py_ssize_t)
    cdef int read_list(self, Node node) except -1

    @cython.locals(entries=Cells, child=Node)
    cdef int read_block(self, Node node, long long count) except -1

    cdef int put_whole(self, Node node, long long number) except -1

    @cython.locals(
        width=cython.int, index=cython.int, bits=cython.ulonglong, double=cython.double, small=cython.float,
        small_bits=cython.uint,
    )
    cdef int put_real(self, Node node) except -1

    cdef int put_bytes(self, Node node, Py_ssize_t size) except -1

    @cython.locals(high=cython.int, index=cython.Py_ssize_t)
    cdef int is_text(self, Py_ssize_t size) except -1

    cdef int put_decimal(self, Node node, Py_ssize_t size) except -1
    @cython.locals(child=Node)
    cdef int put_constant(self, Node node) except -1
