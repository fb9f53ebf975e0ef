"""Functions of scalars."""

import math
from builtins import max as max_of

from ..error import InternalError
from ..ffi import dtype as _dtype
from ..ir import _api
from ..ir.expr import Expr, bits_of, check_divisor
from ..ir.prim import Broadcast, FloatImm, IntImm, Ramp, StringImm, const
from ..ir.type import PointerType


#: Functions that are known of a literal, but of infinities and what is no number.
_ROUNDED = {"ceil": math.ceil, "floor": math.floor, "trunc": math.trunc, "round": round, "nearbyint": round}
_ASKED = {"isnan": math.isnan, "isinf": math.isinf, "isfinite": math.isfinite}


def _intrinsic(name, dtype=None):
    def call(x, span=None):
        x = const(x, "float32") if isinstance(x, (int, float)) else x
        if str(x.dtype).startswith(("int", "uint", "bool")) and (name in _ROUNDED or name == "isnan"):
            # Whole numbers are rounded, and are numbers.
            _, by, lanes = str(x.dtype).partition("x")
            return x if name in _ROUNDED else const(False, f"bool{by}{lanes}")
        if name == "isnan" and str(x.dtype).startswith("float16"):
            x = x.astype(str(x.dtype).replace("float16", "float32", 1))
        if isinstance(x, FloatImm) and name in _ASKED:
            return const(_ASKED[name](x.value), "bool")
        if isinstance(x, FloatImm) and name in _ROUNDED and math.isfinite(x.value):
            return const(float(_ROUNDED[name](x.value)), x.dtype)
        return _api.prim.call(x.dtype if dtype is None else _dtype(dtype), f"tirx.{name}", [x])

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"``{name}`` of a scalar."
    return call


acos, acosh, asin, asinh, atan, atanh, ceil, cos, cosh, erf, exp, exp2, exp10, floor, log, log2, log10, log1p = map(
    _intrinsic,
    "acos acosh asin asinh atan atanh ceil cos cosh erf exp exp2 exp10 floor log log2 log10 log1p".split(),
)
nearbyint, round, rsqrt, sigmoid, sin, sinh, sqrt, tan, tanh, trunc = map(
    _intrinsic, "nearbyint round rsqrt sigmoid sin sinh sqrt tan tanh trunc".split()
)


def _binary(name, op):
    def call(a, b, span=None):
        check_divisor(op, a, b)
        return _api.prim.binary(op, a, b)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{op} of two scalars."
    return call


add, subtract, multiply = _binary("add", "Add"), _binary("subtract", "Sub"), _binary("multiply", "Mul")
div, truncdiv, truncmod = _binary("div", "Div"), _binary("truncdiv", "Div"), _binary("truncmod", "Mod")
floordiv, floormod = _binary("floordiv", "FloorDiv"), _binary("floormod", "FloorMod")


def _reducing(name, what):
    def call(expr, axis, where=None, init=None, *args):
        from .. import te

        return getattr(te, name)(expr, axis, where, init, *args)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{what} of scalars; with ``axis``, which names reduction axes, of a value over them."
    return call


min, max = _reducing("min", "The smallest"), _reducing("max", "The largest")
sum = _reducing("sum", "The sum")
indexdiv, indexmod = floordiv, floormod


def ceildiv(lhs, rhs, span=None):
    """The quotient, rounded up."""
    return floordiv(lhs + rhs - 1, rhs)


def power(x, y, span=None):
    """``x`` to the power of ``y``."""
    x, y = (value.asobject() if hasattr(value, "asobject") else value for value in (x, y))
    floats = [value.dtype for value in (x, y) if isinstance(value, Expr) and "float" in str(value.dtype)]
    if not floats:
        raise InternalError("power is a function of floats: convert a side with astype")
    dtype = max_of(floats, key=lambda dtype: dtype.bits)
    values = [const(value, dtype) if isinstance(value, (int, float)) else value.astype(dtype) for value in (x, y)]
    return _api.prim.call(dtype, "tirx.pow", values)


pow = power


def abs(x, span=None):
    """The absolute value."""
    return _api.prim.select(_api.prim.binary("Lt", x, 0), _api.prim.binary("Sub", const(0, x.dtype), x), x)


def if_then_else(cond, t, f, span=None):
    """A choice by a condition, where only the chosen side is evaluated."""
    _check_condition(cond)
    return _api.prim.if_then_else(cond, t, f)


def all(*args, span=None):
    """Whether all conditions hold."""
    return _joined("And", args)


def any(*args, span=None):
    """Whether any condition holds."""
    return _joined("Or", args)


def _check_condition(condition):
    if isinstance(condition, Expr) and not str(condition.dtype).startswith("bool"):
        raise InternalError(f"a condition is a bool, not {condition.dtype}: compare it with a number")


def _joined(op, conditions):
    if not conditions:
        raise ValueError("at least one condition is needed")
    conditions = [c.asobject() if hasattr(c, "asobject") else c for c in conditions]
    if len(conditions) > 1:
        for condition in conditions:
            _check_condition(condition)
    result, *rest = conditions
    for condition in rest:
        result = _api.prim.binary(op, result, condition)
    return result


def vscale():
    """How many times longer the machine's scalable vectors are than their shortest; one where it has none."""
    return call_intrin("int32", "tirx.vscale")


def get_active_lane_mask(dtype, base, limit):
    """Which lanes of a vector that begins at ``base`` lie in front of ``limit``: a comparison of as many lanes as ``dtype`` has."""
    lanes = _dtype(dtype).lanes
    # The lanes of scalable vectors are negative numbers of sixteen bits.
    count = vscale() * (2**16 - lanes) if lanes >= 2**15 else lanes
    base, limit = (const(e) if isinstance(e, int) else e for e in (base, limit))
    return Ramp(base, 1, count) < Broadcast(limit, count)


def min_value(dtype, span=None):
    """The least value of an element type."""
    return _limit(dtype, low=True)


def max_value(dtype, span=None):
    """The greatest value of an element type."""
    return _limit(dtype, low=False)


def _limit(dtype, low):
    import numpy as np

    name = str(_dtype(dtype))
    limits = np.finfo(name) if name.startswith("float") else np.iinfo(name)
    return const((float if name.startswith("float") else int)(limits.min if low else limits.max), name)


def convert(value, span=None):
    """A number as a scalar expression."""
    return const(value) if isinstance(value, (bool, int, float)) else value


isnan, isfinite, isinf = (_intrinsic(name, "bool") for name in ("isnan", "isfinite", "isinf"))


def _intrinsic_of_two(name):
    def call(x, y, span=None):
        base = next((value for value in (x, y) if isinstance(value, Expr)), None)
        dtype = "float32" if base is None else base.dtype
        values = [const(value, dtype) if isinstance(value, (int, float)) else value for value in (x, y)]
        folded = bits_of(name, _dtype(dtype), *values)
        return _api.prim.call(_dtype(dtype), f"tirx.{name}", values) if folded is None else folded

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"``{name}`` of two scalars."
    return call


bitwise_and, bitwise_or, bitwise_xor = map(_intrinsic_of_two, ("bitwise_and", "bitwise_or", "bitwise_xor"))
shift_left, shift_right, fmod, atan2 = map(_intrinsic_of_two, ("shift_left", "shift_right", "fmod", "atan2"))
hypot, copysign, nextafter = map(_intrinsic_of_two, ("hypot", "copysign", "nextafter"))


bitwise_not, popcount, clz, fabs = map(_intrinsic, ("bitwise_not", "popcount", "clz", "fabs"))


def fma(x, y, z, span=None):
    """``x * y + z``, rounded once."""
    return _api.prim.call(x.dtype, "tirx.fma", [x, y, z])


def ldexp(x1, x2, span=None):
    """``x1`` times two to the power of ``x2``, an integer."""
    return _api.prim.call(x1.dtype, "tirx.ldexp", [x1, const(x2) if isinstance(x2, int) else x2])


def logaddexp(x, y, span=None):
    """``log(exp(x) + exp(y))``, where neither exponential overflows."""
    larger = max(x, y)
    return larger + log1p(exp(min(x, y) - larger))


def call_intrin(dtype, func_name, *args, attrs=None, span=None):
    """A call of an intrinsic by its name."""
    name = getattr(func_name, "name", func_name)
    dtype = "handle" if isinstance(dtype, PointerType) else dtype
    return _api.prim.call(_dtype(dtype), _ONE_NAME.get(name, name), [_operand(a) for a in args])


#: Calls that have two names, by the one that is not used.
_ONE_NAME = {"tirx.tvm_call_packed": "tirx.call_packed", "tirx.tvm_call_cpacked": "tirx.call_cpacked"}


def _operand(value):
    if isinstance(value, str):
        return StringImm(value)
    return const(value) if isinstance(value, (int, float)) else value


def call_extern(dtype, func_name, *args, span=None):
    """A call of a C function."""
    return call_intrin(dtype, "tirx.call_extern", StringImm(func_name), *args)


call_pure_extern = call_extern


def call_packed(*args, span=None):
    """A call of a registered function by its name. Buffers among the arguments come to it as tensors, for the call only."""
    from .buffer import Buffer

    name, *rest = args
    rest = [_api.tirx.TensorArgument(arg) if isinstance(arg, Buffer) else arg for arg in rest]
    return call_intrin("int32", "tirx.call_packed", StringImm(name) if isinstance(name, str) else name, *rest)


def reinterpret(dtype, value, span=None):
    """The bits of a value as another type. Of a ``handle``, an integer of 64 bits is the address; others are a TypeError."""
    given = str(getattr(value, "dtype", "int64"))
    if str(_dtype(dtype)) == "handle" and given not in ("int64", "uint64", "handle"):
        raise TypeError(f"an address needs a scalar 64-bit integer source, not {given}")
    return _api.prim.call(_dtype(dtype), "tirx.reinterpret", [value])


def likely(cond, span=None):
    """A condition that mostly holds."""
    return cond if isinstance(cond, IntImm) else _api.prim.call(_dtype("bool"), "tirx.likely", [cond])


def infinity(dtype, span=None):
    """The infinity of an element type."""
    return const(float("inf"), dtype)


def __getattr__(name):
    # Calls about the machine are in files of their own, which are made of the functions here; reductions are the compute language's.
    from . import device_intrinsic, intrinsic

    for module in (device_intrinsic, intrinsic):
        if name in module.__all__:
            return getattr(module, name)
    if name == "comm_reducer":
        from .. import te

        return te.comm_reducer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
