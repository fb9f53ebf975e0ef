"""Sparse tensors as values that programs make and look at. Sessions take and give dense ones: no operator here takes others."""

import enum

import numpy as np

from ._values import OrtValue, checked_device, element_of


class OrtSparseFormat(enum.IntEnum):
    """How a sparse tensor is kept."""

    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2
    ORT_SPARSE_BLOCK_SPARSE = 4


class SparseCooView:
    """Where the values are: each by its number among all elements, or by row and column."""

    def __init__(self, indices):
        self._indices = indices

    def indices(self):
        """The places."""
        return self._indices


class SparseCsrView:
    """Where the values are: the column of each, and where each row begins among them."""

    def __init__(self, inner, outer):
        self._inner, self._outer = inner, outer

    def inner(self):
        """The columns."""
        return self._inner

    def outer(self):
        """Where rows begin, and behind the last."""
        return self._outer


class SparseTensor:
    """The elements of a tensor that are not zero, and where they are."""

    def __init__(self, dense_shape, values, view, device):
        self._shape, self._values, self._view, self._device = dense_shape, values, view, device

    @staticmethod
    def sparse_coo_from_numpy(dense_shape, values, coo_indices, ort_device):
        """Values with their places: as many numbers, or as many rows and columns."""
        shape, values = _shape_of(dense_shape), _values_of(values)
        indices = _whole(coo_indices, "coo_indices")
        if indices.size not in (values.size, 2 * values.size):
            raise RuntimeError(f"{values.size} values have {values.size} places or {2 * values.size} coordinates, not {indices.size}")
        return SparseTensor(shape, values, SparseCooView(indices), _device_of(ort_device))

    @staticmethod
    def sparse_csr_from_numpy(dense_shape, values, inner_indices, outer_indices, ort_device):
        """Values row by row, with their columns and the beginnings of rows."""
        shape, values = _shape_of(dense_shape), _values_of(values)
        inner, outer = _whole(inner_indices, "inner_indices"), _whole(outer_indices, "outer_indices")
        if len(shape) != 2 or inner.size != values.size or outer.size != shape[0] + 1:
            raise RuntimeError(
                f"a matrix of shape {shape} with {values.size} values has as many columns and one more beginnings than rows; "
                f"there are {inner.size} and {outer.size}"
            )
        return SparseTensor(shape, values, SparseCsrView(inner, outer), _device_of(ort_device))

    def as_coo_view(self):
        """Where the values of a tensor with places are."""
        return self._viewed(SparseCooView, "with places")

    def as_csrc_view(self):
        """Where the values of a tensor with rows are."""
        return self._viewed(SparseCsrView, "with rows")

    def as_blocksparse_view(self):
        """Refused: no tensor here is kept in blocks."""
        return self._viewed((), "of blocks")

    def _viewed(self, kind, words):
        if not isinstance(self._view, kind):
            raise RuntimeError(f"the tensor is none {words}: its format is {self.format().name}")
        return self._view

    def values(self):
        """The values."""
        return self._values

    def dense_shape(self):
        """The shape with the zeros."""
        return list(self._shape)

    def format(self):
        """How it is kept."""
        is_coo = isinstance(self._view, SparseCooView)
        return OrtSparseFormat.ORT_SPARSE_COO if is_coo else OrtSparseFormat.ORT_SPARSE_CSRC

    def data_type(self):
        """The type as operator definitions write it."""
        return f"sparse_tensor({element_of(self._values.dtype)})"

    def device_name(self):
        """The kind of the device that it is on."""
        return "cpu"

    def to_cuda(self, ort_device):
        """Refused: there is no such device."""
        raise RuntimeError("there is no device of CUDA: values are in the processor's memory")


class SparseValue(OrtValue):
    """A sparse tensor as a value."""

    def __init__(self, sparse):
        if not isinstance(sparse, SparseTensor):
            raise AttributeError(f"a SparseTensor is expected, not {type(sparse).__name__}")
        super().__init__(sparse)

    def is_sparse_tensor(self):
        """True."""
        return True

    def as_sparse_tensor(self):
        """The tensor."""
        return self._value

    def is_tensor_sequence(self):
        """False."""
        return False

    def data_type(self):
        """The type as operator definitions write it."""
        return self._value.data_type()


def _shape_of(dense_shape):
    if dense_shape is None:
        raise TypeError("dense_shape is the lengths of the axes, not None")
    return [int(length) for length in dense_shape]


def _values_of(values):
    if not isinstance(values, np.ndarray):
        raise TypeError(f"values are an array, not {type(values).__name__}")
    return values.astype(object) if element_of(values.dtype) == "string" else values


def _whole(indices, name):
    if indices is None:
        raise TypeError(f"{name} are whole numbers, not None")
    return np.asarray(indices, "int64")


def _device_of(device):
    checked_device("cpu" if device.device_type() == 0 else str(device.device_type()), 0)
    return device


__all__ = ["OrtSparseFormat", "SparseTensor"]
