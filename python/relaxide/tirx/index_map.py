"""Maps of indices: how the index of an element changes where a tensor is laid out anew."""

import inspect

from ..ffi import register_object
from ..ir import _api
from ..ir.base import Node, Scriptable
from ..ir.expr import Range, Var


@register_object("tirx.IndexMap")
class IndexMap(Node, Scriptable):
    """From the index of an element to that in another layout: ``IndexMap.from_func(lambda i, j: (i, j // 4, j % 4))``."""

    def __init__(self, initial_indices, final_indices, inverse_index_map=None):
        if callable(inverse_index_map):
            inverse_index_map = IndexMap.from_func(inverse_index_map)
        constructor = _api.tirx.IndexMap
        self.__init_handle_by_constructor__(constructor, list(initial_indices), list(final_indices), inverse_index_map)

    @staticmethod
    def from_func(mapping_function, ndim=None, inverse_index_map=None, *, index_dtype="int64"):
        """The map that a function says. It is called with variables named as its parameters; ``*args`` stand for as many more as
        make ``ndim``."""
        named, several, by_name = [], None, {}
        for name, parameter in inspect.signature(mapping_function).parameters.items():
            if parameter.kind is parameter.VAR_POSITIONAL:
                several = name
            elif parameter.kind is parameter.KEYWORD_ONLY:
                by_name[name] = Var(name, index_dtype)
            elif parameter.kind is parameter.VAR_KEYWORD:
                raise ValueError("a map of indices takes no **kwargs")
            else:
                named.append(Var(name, index_dtype))
        if several is not None:
            if ndim is None:
                raise ValueError("ndim says how many indices *args stand for")
            named += [Var(f"{several}_{i}", index_dtype) for i in range(ndim - len(named) - len(by_name))]
        result = mapping_function(*named, **by_name)
        result = list(result) if isinstance(result, (tuple, list)) else [result]
        return IndexMap([*named, *by_name.values()], result, inverse_index_map)

    def map_indices(self, indices, analyzer=None):
        """Where the element at an index goes."""
        return list(_api.tirx.IndexMapMapIndices(self, list(indices)))

    def map_shape(self, shape, analyzer=None):
        """The dimensions of a tensor of given ones in the new layout."""
        return list(_api.tirx.IndexMapMapShape(self, list(shape)))

    def inverse(self, shape, analyzer=None):
        """The map back over given dimensions. A ValueError says that there is none, or that it leads to more elements than it
        comes from."""
        return _api.tirx.IndexMapInverse(self, _extents(shape))

    def non_surjective_inverse(self, shape, analyzer=None):
        """The map back, and for which new indices there is no old one."""
        inverse, outside = _api.tirx.IndexMapNonSurjectiveInverse(self, _extents(shape))
        return inverse, outside

    def map_tensor(self, arr_src):
        """A tensor in the new layout; elements that come from nowhere are zero.

        Parameters
        ----------
        arr_src : Tensor or array
            The tensor.

        Returns
        -------
        Tensor
        """
        import numpy as np

        from .. import runtime
        from ..compiler import build
        from .function import PrimFunc
        from . import BufferStore, For, ForKind, decl_buffer

        source = arr_src.numpy() if hasattr(arr_src, "numpy") else np.asarray(arr_src)
        shape = [int(dim) for dim in self.map_shape(list(source.shape))]
        A, B = (decl_buffer(dims, str(source.dtype), name=name) for dims, name in ((source.shape, "A"), (shape, "B")))
        axes = [Var(f"i{at}", "int64") for at in range(source.ndim)]
        body = BufferStore(B, A[tuple(axes)], self.map_indices(axes))
        for axis, extent in reversed(list(zip(axes, source.shape))):
            body = For(axis, 0, extent, ForKind.SERIAL, body)
        made = runtime.tensor(np.zeros(shape, source.dtype))
        build(PrimFunc([A, B], body, attrs={"global_symbol": "main"}), "llvm")["main"](runtime.tensor(source), made)
        return made

    def is_equivalent_to(self, other_map, analyzer=None):
        """Whether two maps say the same of every index."""
        if len(self.initial_indices) != len(other_map.initial_indices):
            return False
        mine, others = self.map_indices(self.initial_indices), other_map.map_indices(self.initial_indices)
        return len(mine) == len(others) and all(map(_same, mine, others))


def _extents(shape):
    return [dim.extent if isinstance(dim, Range) else dim for dim in shape]


def _same(a, b):
    from ..ir.base import structural_equal

    return structural_equal(a, b)


def index_map(value):
    """A map of indices, from one or from a function that says it."""
    if isinstance(value, (tuple, list)) and value and isinstance(value[0], IndexMap):
        return value[0]
    return IndexMap.from_func(value) if callable(value) else value


__all__ = ["IndexMap"]
