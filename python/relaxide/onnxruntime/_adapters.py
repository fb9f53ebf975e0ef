"""Adapters (LoRA): files of weights that a run takes in the place of those that a model lists among its inputs.

A file is a FlatBuffer of the identifier ``TORT``: a table of three versions and of parameters, each with its name, its lengths, the
number of its element type in ONNX, and its bytes.
"""

import math
import os
import struct

import numpy as np

from ._errors import NotImplemented
from ._typed import taken_number
from ._values import ELEMENTS, OrtValue, dtype_of

_IDENTIFIER = b"TORT"
#: The version of the form that is written, and the one that is read.
_FORMAT = 1
_NAMES = {number: name for name, (number, _) in ELEMENTS.items()}
#: Elements that lie several to a byte, and those that have no bytes.
_WITHOUT_BYTES = ("string", "uint4", "int4", "float4e2m1")


class _Damaged(Exception):
    """What is wrong with a file."""


class _Reader:
    """Tables of a FlatBuffer, whose every place is checked."""

    def __init__(self, data):
        self._data = data

    def number(self, place, form):
        try:
            return struct.unpack_from(form, self._data, place)[0] if place >= 0 else self._outside(place)
        except struct.error:
            return self._outside(place)

    def _outside(self, place):
        raise _Damaged(f"it points to byte {place}, and has {len(self._data)} bytes")

    def pointed(self, place):
        """Where an offset leads to."""
        return place + self.number(place, "<I")

    def field(self, table, index):
        """Where a field of a table is; nothing where it is left out."""
        layout = table - self.number(table, "<i")
        entry = 4 + 2 * index
        offset = self.number(layout + entry, "<H") if entry + 2 <= self.number(layout, "<H") else 0
        return table + offset if offset else None

    def scalar(self, table, index):
        place = self.field(table, index)
        return 0 if place is None else self.number(place, "<i")

    def vector(self, table, index, size, what):
        """How many elements a vector has, and where they begin."""
        place = self.field(table, index)
        if place is None:
            raise _Damaged(f"{what} are missing")
        place = self.pointed(place)
        count = self.number(place, "<I")
        if place + 4 + count * size > len(self._data):
            raise _Damaged(f"{what} take {count * size} bytes from byte {place + 4} on, and the file has {len(self._data)}")
        return count, place + 4

    def bytes(self, table, index, what):
        count, place = self.vector(table, index, 1, what)
        return bytes(self._data[place : place + count])


def _parameter(reader, table):
    name = reader.bytes(table, 0, "the bytes of a name").decode(errors="replace")
    count, place = reader.vector(table, 1, 8, f"the lengths of {name!r}")
    shape = [reader.number(place + 8 * i, "<q") for i in range(count)]
    number = reader.scalar(table, 2)
    element = _NAMES.get(number)
    if element is None or element in _WITHOUT_BYTES:
        raise _Damaged(f"{name!r} has elements of type {number}, which adapters do not have")
    content = reader.bytes(table, 3, f"the bytes of {name!r}")
    kind = dtype_of(element)
    size = math.prod(shape) * np.dtype(kind).itemsize
    if any(length < 0 for length in shape) or len(content) != size:
        raise _Damaged(f"{name!r} has {len(content)} bytes, and its shape {shape} of {element} takes {size}")
    try:
        array = np.ndarray(shape, kind, content)
    except ValueError as error:
        raise _Damaged(f"{name!r} has the shape {shape}: {error}") from error
    return name, OrtValue.ortvalue_from_numpy(array), size


def _read(path):
    """The versions and the parameters of a file."""
    try:
        with open(os.fspath(path), "rb") as file:
            data = memoryview(file.read())
    except OSError as error:
        raise RuntimeError(f"{path}: {error.strerror}; a file of an adapter is expected") from error
    if bytes(data[4:8]) != _IDENTIFIER:
        raise RuntimeError(f"{path}: this is no file of an adapter, whose bytes 4 to 7 are {_IDENTIFIER.decode()}")
    reader = _Reader(data)
    try:
        root = reader.pointed(0)
        versions = [reader.scalar(root, index) for index in range(3)]
        if versions[0] != _FORMAT:
            raise _Damaged(f"its form has version {versions[0]}, and {_FORMAT} is read")
        count, place = reader.vector(root, 3, 4, "the parameters") if reader.field(root, 3) is not None else (0, 0)
        parameters, size = {}, 0
        for i in range(count):
            name, parameters[name], more = _parameter(reader, reader.pointed(place + 4 * i))
            size += more
            if size > len(data):
                raise _Damaged("its parameters share their bytes")
    except _Damaged as error:
        raise RuntimeError(f"{path}: the adapter is damaged: {error}") from error
    return versions, parameters


class _Writer:
    """A FlatBuffer that is written from its front; what a table points to lies behind it."""

    def __init__(self):
        self.data = bytearray()

    def align(self, to, behind=0):
        """Fill up until a place that is ``behind`` bytes further is a multiple."""
        self.data += bytes(-(len(self.data) + behind) % to)

    def table(self, fields):
        """A table of fields of four bytes: numbers, and offsets (``None``) to be set by :meth:`point`. Gives the places of the fields."""
        self.align(4, behind=4 + 2 * len(fields))
        size = 4 + 4 * len(fields)
        self.data += struct.pack(f"<{2 + len(fields)}H", 4 + 2 * len(fields), size, *(4 + 4 * i for i in range(len(fields))))
        table = len(self.data)
        self.data += struct.pack("<i", 4 + 2 * len(fields))
        for value in fields:
            self.data += struct.pack("<i", value or 0)
        return table, [table + 4 + 4 * i for i in range(len(fields))]

    def point(self, place, to):
        struct.pack_into("<I", self.data, place, to - place)

    def vector(self, place, count, content):
        """A vector whose elements begin at a multiple of eight bytes, and the offset to it."""
        self.align(8, behind=4)
        self.point(place, len(self.data))
        self.data += struct.pack("<I", count) + content


def _written(versions, parameters):
    writer = _Writer()
    writer.data += bytes(4) + _IDENTIFIER
    root, fields = writer.table([*versions, None])
    writer.point(0, root)
    writer.vector(fields[3], len(parameters), bytes(4 * len(parameters)))
    places = [len(writer.data) - 4 * (len(parameters) - i) for i in range(len(parameters))]
    for place, (name, value) in zip(places, parameters.items()):
        table, (of_name, of_shape, _, of_content) = writer.table([None, None, value.element_type(), None])
        writer.point(place, table)
        encoded, array = name.encode(), value.numpy()
        writer.vector(of_name, len(encoded), encoded + b"\0")
        writer.vector(of_shape, array.ndim, struct.pack(f"<{array.ndim}q", *array.shape))
        writer.vector(of_content, array.nbytes, array.tobytes())
    writer.align(8)
    return bytes(writer.data)


class AdapterFormat:
    """A file of an adapter: made of values and written, or read to be looked at."""

    def __init__(self, adapter=None):
        self._versions, self._parameters = adapter or ([_FORMAT, 0, 0], {})

    @staticmethod
    def read_adapter(file_path):
        """The content of a file."""
        return AdapterFormat(_read(file_path))

    def export_adapter(self, file_path):
        """Write a file."""
        content = _written(self._versions, self._parameters)
        with open(os.fspath(file_path), "wb") as file:
            file.write(content)

    def get_format_version(self):
        """The version of the file's form."""
        return self._versions[0]

    def set_adapter_version(self, adapter_version):
        """Say which version of the adapter this is."""
        self._versions[1] = taken_number(adapter_version, "adapter_version")

    def get_adapter_version(self):
        """Which version of the adapter this is."""
        return self._versions[1]

    def set_model_version(self, model_version):
        """Say for which version of the model the adapter is."""
        self._versions[2] = taken_number(model_version, "model_version")

    def get_model_version(self):
        """For which version of the model the adapter is."""
        return self._versions[2]

    def set_parameters(self, params):
        """Set the values by the names of the weights that they stand for."""
        for name, value in params.items():
            if not isinstance(value, OrtValue):
                raise AttributeError(f"the parameter {name!r} is an OrtValue, not {type(value).__name__}")
            if not value.is_tensor() or value.data_type()[len("tensor(") : -1] in _WITHOUT_BYTES:
                raise NotImplemented(f"the parameter {name!r} is {value.data_type()}; adapters have tensors of whole bytes")
        self._parameters = dict(params)

    def get_parameters(self):
        """The values by name."""
        return dict(self._parameters)


class LoraAdapter:
    """An adapter that runs can take (``RunOptions.add_active_adapter``)."""

    def __init__(self):
        self._parameters = {}

    def Load(self, arg0):  # noqa: N802
        """Read a file."""
        _, self._parameters = _read(arg0)


__all__ = ["AdapterFormat", "LoraAdapter"]
