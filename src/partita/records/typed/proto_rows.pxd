# The types of proto_rows.py when Cython compiles it. Nothing here is needed to run it uncompiled.

import cython

from partita.records.typed.cells cimport Cells, Listed, Real, Struct, Text, Whole

cdef int VARINT, SIGNED, FIXED, REAL, TEXT, BYTES, ENUM, MESSAGE, TIMESTAMP, BOOLEAN
cdef int _VARINT_WIRE, _FIXED64_WIRE, _SIZED_WIRE, _GROUP_WIRE, _GROUP_END_WIRE, _FIXED32_WIRE
cdef int _DEPTH_MAX, _HEAD, _INDEXES_MAX
cdef long long _SECONDS_MAX


@cython.final
cdef class ProtoField:
    cdef public int kind, width
    cdef public long long number
    cdef public bint is_required, skips_zero
    cdef public Cells cells
    cdef public Listed listed
    cdef public Whole whole
    cdef public Real real
    cdef public Text text
    cdef public Struct struct
    cdef public list fields
    cdef public dict symbols
    cdef public object name, unknown, default


@cython.final
cdef class ProtoRows:
    cdef public Struct root
    cdef public list fields, faults
    cdef public object learn
    cdef dict known
    cdef object known_head, reason
    cdef const unsigned char* data
    cdef Py_ssize_t pos, end
    cdef int depth
    cdef bint is_split

    @cython.locals(root=Struct, row=cython.Py_ssize_t, at=cython.Py_ssize_t, start=cython.Py_ssize_t)
    cpdef int read(
        self,
        const unsigned char[::1] data,
        const int[::1] offsets,
        const unsigned char[::1] nulls,
        Py_ssize_t first,
        Py_ssize_t count,
    ) except -1

    @cython.locals(start=cython.Py_ssize_t, end=cython.Py_ssize_t)
    cdef int read_record(self, Py_ssize_t row) except -1

    @cython.locals(data="const unsigned char*", outer=cython.Py_ssize_t, joined=bytes, is_read=cython.int)
    cdef int read_merged(self, list fields, Struct struct, Py_ssize_t end) except -1

    @cython.locals(
        parts=dict, start=cython.Py_ssize_t, body=cython.Py_ssize_t, found=cython.Py_ssize_t, tag=cython.longlong,
        size=cython.longlong, is_part=cython.bint, field=ProtoField,
    )
    cdef bytes joined(self, list fields, Py_ssize_t end)

    @cython.locals(start=cython.Py_ssize_t, count=cython.longlong)
    cdef object choose(self)

    @cython.locals(value=cython.ulonglong, shift=cython.int, byte=cython.ulonglong)
    cdef long long varint(self) noexcept

    @cython.locals(
        row=cython.Py_ssize_t, place=cython.Py_ssize_t, outer=cython.Py_ssize_t, tag=cython.longlong,
        number=cython.longlong, wire=cython.int, found=cython.Py_ssize_t, field=ProtoField,
    )
    cdef int read_fields(self, list fields, Struct struct, Py_ssize_t end) except -1

    cdef int read_message(self, list fields, Struct struct, Py_ssize_t end) except -1

    @cython.locals(count=cython.Py_ssize_t, step=cython.Py_ssize_t, at=cython.Py_ssize_t, field=ProtoField)
    cdef Py_ssize_t place_of(self, list fields, long long number, Py_ssize_t place) except -2

    @cython.locals(size=cython.longlong)
    cdef bint skip(self, int wire, long long number) noexcept

    @cython.locals(tag=cython.longlong)
    cdef bint skip_group(self, long long number) noexcept

    @cython.locals(kind=cython.int, expected=cython.int)
    cdef int read_field(self, ProtoField field, int wire, Py_ssize_t row) except -1

    @cython.locals(size=cython.longlong, stop=cython.Py_ssize_t)
    cdef int read_packed(self, ProtoField field) except -1

    @cython.locals(kind=cython.int, size=cython.longlong, number=cython.longlong)
    cdef int read_value(self, ProtoField field) except -1

    cdef int put_whole(self, ProtoField field, long long number) except -1

    cdef int put_symbol(self, ProtoField field, long long number) except -1

    @cython.locals(high=cython.int, index=cython.Py_ssize_t)
    cdef int put_bytes(self, ProtoField field, Py_ssize_t size) except -1

    @cython.locals(
        double=cython.double, small=cython.float, width=cython.int, bits=cython.ulonglong, small_bits=cython.uint,
        index=cython.int, number=cython.longlong,
    )
    cdef int put_fixed(self, ProtoField field) except -1

    @cython.locals(
        seconds=cython.longlong, nanos=cython.longlong, outer=cython.Py_ssize_t, tag=cython.longlong,
        micros=cython.longlong,
    )
    cdef int put_timestamp(self, ProtoField field, Py_ssize_t end) except -1

    cdef int put_default(self, ProtoField field) except -1
