"""Calls that scalars' own functions (:mod:`relaxide.tirx.op`) leave out: jumps, addresses, lanes of vectors, promises, and
functions of LLVM and of the same library."""

from ..ffi import dtype as _dtype
from ..ffi import get_global_func, register_global_func
from ..ir import _api
from ..ir.prim import BufferLoad, StringImm, const
from ..ir.type import PrimType
from .op import call_intrin


def _scalar(value):
    return const(value) if isinstance(value, (bool, int, float)) else value


def break_loop(span=None):
    """Leaves the innermost loop, where it is evaluated as a statement."""
    return call_intrin("void", "tirx.break_loop")


def continue_loop(span=None):
    """Goes on with the next iteration of the innermost loop, where it is evaluated as a statement."""
    return call_intrin("void", "tirx.continue_loop")


def address_of(obj, span=None):
    """The address of an element that is read, of a buffer's first, or of a variable."""
    load = obj if hasattr(obj, "indices") or not hasattr(obj, "shape") else obj[tuple(0 for _ in obj.shape)]
    return call_intrin("handle", "tirx.address_of", load)


def tvm_access_ptr(ptype, data, offset, extent, rw_mask):
    """The address ``offset`` elements behind ``data``; ``ptype`` is the type of elements, or an annotation of it."""
    if isinstance(ptype, PrimType):
        ptype = str(ptype.dtype)
    ptype = ptype if hasattr(ptype, "dtype") and not isinstance(ptype, str) else type_annotation(ptype)
    return call_intrin("handle", "tirx.tvm_access_ptr", ptype, data, offset, extent, rw_mask)


def type_annotation(dtype):
    """Nothing but a type, for what asks for one among its arguments."""
    return call_intrin(dtype, "tirx.type_annotation")


def masked_load(dtype, buffer, *indices_and_mask):
    """The lanes of a vector that a mask chooses, read at indices; the others are zero. The mask comes last, and ``dtype`` is the vector's."""
    if len(indices_and_mask) < 2:
        raise ValueError("masked_load expects indices and a mask behind the buffer")
    *indices, mask = indices_and_mask
    load = BufferLoad(buffer, indices, mask)
    if str(load.dtype) != str(dtype):
        raise TypeError(f"masked_load: the elements of {buffer.name} at these indices are {load.dtype}, not {dtype}")
    return load


def masked_store(buffer, value, *indices_and_mask):
    """The statement that stores the lanes of a vector that a mask chooses; the mask comes last."""
    from .stmt import BufferStore

    if len(indices_and_mask) < 2:
        raise ValueError("masked_store expects indices and a mask behind the value")
    *indices, mask = indices_and_mask
    return BufferStore(buffer, value, indices, mask)


def handle_add_byte_offset(handle, offset):
    """The address ``offset`` bytes behind another."""
    return call_intrin("handle", "tirx.handle_add_byte_offset", handle, offset)


def isnullptr(var, span=None):
    """Whether a handle is null."""
    return call_intrin("bool", "tirx.isnullptr", var)


def assume(cond=None):
    """A promise that a condition holds, where it is evaluated as a statement."""
    return call_intrin("bool", "tirx.assume", cond)


def undef():
    """A value that nobody reads. Nothing is made of it: a kernel that is left with one is refused."""
    return call_intrin("int32", "tirx.undef")


def ignore_loop_partition(predicate):
    """The condition itself, by which no loop is to be parted."""
    return call_intrin("bool", "tirx.ignore_loop_partition", predicate)


def vectorlow(dtype, vec):
    """The lower half of a vector's lanes."""
    return call_intrin(dtype, "tirx.vectorlow", vec)


def vectorhigh(dtype, vec):
    """The upper half of a vector's lanes."""
    return call_intrin(dtype, "tirx.vectorhigh", vec)


def vectorcombine(dtype, vec1, vec2):
    """The lanes of one vector, and behind them those of another."""
    return call_intrin(dtype, "tirx.vectorcombine", vec1, vec2)


def Shuffle(vectors, indices, span=None):
    """Lanes of vectors by their numbers, which count through all of the vectors."""
    vectors, indices = list(vectors), [_scalar(index) for index in indices]
    element = _dtype(vectors[0].dtype).with_lanes(1)
    return call_intrin(element.with_lanes(len(indices)), "tirx.shuffle", len(vectors), *vectors, *indices)


def q_multiply_shift(x, y, q, s):
    """``x`` times the fixed-point number ``y`` of ``q`` bits behind the point, moved by ``s`` bits, rounded to nearest."""
    return call_intrin("int32", "tirx.q_multiply_shift", x, y, q, s)


def q_multiply_shift_per_axis(x, y, ls, rs, q, is_lshift_required, is_rshift_required):
    """The same, moved to the left by ``ls`` and to the right by ``rs`` where that is asked for."""
    flags = [const(bool(flag), "bool") for flag in (is_lshift_required, is_rshift_required)]
    return call_intrin("int32", "tirx.q_multiply_shift_per_axis", x, y, ls, rs, q, *flags)


def call_llvm_intrin(dtype, name, *args, span=None):
    """A call of one of LLVM's functions: ``"llvm.sqrt"``, or the number that ``target.codegen.llvm_lookup_intrinsic_id`` gives for it."""
    return call_intrin(dtype, "tirx.call_llvm_intrin", _of_llvm(name), *args)


def _of_llvm(name):
    if isinstance(name, str):
        return StringImm(name)
    from ..target.codegen import llvm_get_intrinsic_name

    return StringImm(llvm_get_intrinsic_name(int(getattr(name, "value", name))))


def call_llvm_pure_intrin(dtype, name, *args, span=None):
    """The same of a function without effects."""
    return call_intrin(dtype, "tirx.call_llvm_pure_intrin", _of_llvm(name), *args)


def trace(args, trace_action="tvm.default_trace_action"):
    """The last of ``args``, after a registered function was called with all of them.

    What the function returns takes its place, where it returns something.

    Parameters
    ----------
    args : list of Expr
        The arguments.
    trace_action : str
        The function's name; ``tvm.default_trace_action`` prints them.

    Raises
    ------
    TypeError
        ``args`` is no list.
    """
    if not isinstance(args, list):
        raise TypeError(f"tirx.trace takes the arguments as a list, and got {type(args).__name__}")
    values = [_scalar(value) for value in args]
    return call_intrin(values[-1].dtype, "tirx.call_packed", StringImm("tirx.trace"), StringImm(trace_action), *values)


@register_global_func("tirx.trace", override=True)
def _traced(action, *values):
    """Calls the action of a trace; its result, or the value that is traced where it has none."""
    result = get_global_func(action)(*values)
    return values[-1] if result is None else result


@register_global_func("tvm.default_trace_action", override=True)
def _print_traced(*values):
    print(*values)


def call_cpacked(*args, span=None):
    """A call of a kernel of the same library by its name."""
    from .buffer import Buffer

    name, *rest = args
    rest = [_api.tirx.TensorArgument(arg) if isinstance(arg, Buffer) else arg for arg in rest]
    return call_intrin("int32", "tirx.call_cpacked", StringImm(name) if isinstance(name, str) else name, *rest)


__all__ = ["Shuffle", "address_of", "assume", "break_loop", "call_cpacked", "call_llvm_intrin", "call_llvm_pure_intrin"]
__all__ += ["continue_loop", "handle_add_byte_offset", "ignore_loop_partition", "isnullptr", "q_multiply_shift"]
__all__ += ["q_multiply_shift_per_axis", "trace", "tvm_access_ptr", "type_annotation", "undef", "vectorcombine", "vectorhigh"]
__all__ += ["masked_load", "masked_store", "vectorlow"]
