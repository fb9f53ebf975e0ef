"""The effects that models use: output, and caches of keys and values."""

from ...block_builder import BlockBuilder
from ...expr import ShapeExpr, Var
from ...type import AnyType, TensorType
from ._module import Effect
from ._values import Tensor, get_default_dtype


def _relax():
    from ... import op

    return op


class IOEffect(Effect):
    """The order of output: what prints takes the state of output and gives it back."""

    def __init__(self):
        #: The state, while a function is being written.
        self.effect = None

    def emit_init(self, name_hint, builder):
        return [builder.emit(_relax().null_value(), f"{name_hint}_io")]

    def create(self, name_hint):
        return [Var(f"{name_hint}_io", AnyType())]

    def set_state(self, state_vars):
        (self.effect,) = state_vars

    def finalize(self):
        state, self.effect = self.effect, None
        return [state]


class KVCache(Effect):
    """A cache of keys or values, which grows with each call.

    Parameters
    ----------
    init_seq_len : int
        The positions that it has room for at first.
    unit_shape : sequence of int
        The shape of one position, usually heads and their size.
    dtype : str, optional
        The element type.
    """

    def __init__(self, init_seq_len, unit_shape, dtype=None):
        self.init_seq_len, self.unit_shape = init_seq_len, [int(dim) for dim in unit_shape]
        self.dtype = dtype or get_default_dtype()
        #: The state, while a function is being written.
        self.cache = None

    def emit_init(self, name_hint, bb):
        shape = ShapeExpr([self.init_seq_len, *self.unit_shape])
        zeros = _relax().zeros(shape, self.dtype)
        make = "vm.builtin.attention_kv_cache_create"
        return [bb.emit(_relax().call_pure_packed(make, zeros, shape, 0, ty_args=AnyType()), name_hint)]

    def create(self, name_hint):
        return [Var(name_hint, AnyType())]

    def set_state(self, state_vars):
        (self.cache,) = state_vars

    def finalize(self):
        state, self.cache = self.cache, None
        return [state]

    def to(self, dtype=None):
        self.dtype = dtype or self.dtype

    def view(self, seq_len):
        """The positions of the cache as one tensor; ``seq_len`` says how many there are."""
        shape = ShapeExpr([seq_len, *self.unit_shape])
        view = "vm.builtin.attention_kv_cache_view"
        call = _relax().call_pure_packed(view, self.cache, shape, ty_args=TensorType(shape, self.dtype))
        return Tensor(_expr=BlockBuilder.current().emit(call))

    def append(self, new_element):
        """Add positions at the end."""
        if new_element.dtype != self.dtype:
            raise TypeError(f'KVCache has been set to use dtype "{self.dtype}", but got "{new_element.dtype}"')
        append = "vm.builtin.attention_kv_cache_append"
        call = _relax().call_inplace_packed(append, self.cache, new_element._expr, inplace_indices=[0], ty_args=AnyType())
        self.cache = BlockBuilder.current().emit(call)


__all__ = ["IOEffect", "KVCache"]
