"""Programs that TVM compiles for the exchange: each exercises another part of the machine.

Needs TVM: the decorators are its own. ``PROGRAMS`` says how each is compiled and what it is called with.
"""

from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T


@I.ir_module
class Constants:
    """Weights in the constant pool, of several element types."""

    @R.function
    def main(x: R.Tensor((2, 3), "float32")):
        scaled = R.multiply(x, R.const([[1.5, -2.0, 0.25]], "float32"))
        picked = R.take(scaled, R.const([2, 0], "int64"), axis=1)
        return R.where(R.const([[True, False], [False, True]], "bool"), picked, R.const(7.0, "float32"))


@I.ir_module
class Symbolic:
    """Two symbolic dimensions, a product and a reshape whose sizes are computed."""

    @R.function
    def main(x: R.Tensor(("n", "m"), "float32"), y: R.Tensor(("m", 4), "float32")):
        n, m = T.int64(), T.int64()
        product = R.matmul(x, y)
        doubled = R.concat([product, R.nn.relu(product)], axis=0)
        return R.reshape(doubled, R.shape([n * 8]))


@I.ir_module
class Branches:
    """A condition that is computed, and a function that calls itself."""

    @R.function
    def main(n: R.Tensor((), "int32"), x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        more = R.greater(n, R.const(0, "int32"))
        if more:
            less = R.subtract(n, R.const(1, "int32"))
            r = Branches.main(less, R.add(x, x))
        else:
            r = R.negative(x)
        return r


@I.ir_module
class Tuples:
    """Nested tuples in and out."""

    @R.function
    def main(p: R.Tuple(R.Tensor((2,), "int32"), R.Tuple(R.Tensor((2,), "int32"), R.Tensor((3,), "float64")))):
        inner = p[1]
        total = R.add(p[0], inner[0])
        return (inner, (total, (R.sqrt(inner[1]),)))


@I.ir_module
class Foreign:
    """A function of the host by name."""

    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")):
        y = R.call_packed("test.interop.halve", x, ty_args=R.Tensor((4,), "float32"))
        return R.add(y, x)


@I.ir_module
class Types:
    """Element types beside float32."""

    @R.function
    def main(h: R.Tensor((8,), "float16"), i: R.Tensor((8,), "int8"), u: R.Tensor((8,), "uint8")):
        half = R.multiply(h, R.const(3.0, "float16"))
        wide = R.add(R.astype(i, "int64"), R.astype(u, "int64"))
        return (half, R.cumsum(wide, axis=0), R.less(i, R.const(0, "int8")), R.argmax(h, axis=0))


@I.ir_module
class Closures:
    """A function that captures a value and is returned to a caller inside of the program."""

    @R.function
    def main(x: R.Tensor((2, 2), "float32"), y: R.Tensor((2, 2), "float32")):
        outer_func = Closures.adder
        in_call = outer_func(x)
        return in_call(y)

    @R.function
    def adder(c: R.Tensor((2, 2), "float32")) -> R.Callable((R.Tensor((2, 2), "float32"),), R.Tensor((2, 2), "float32")):
        @R.function
        def inner(d: R.Tensor((2, 2), "float32")) -> R.Tensor((2, 2), "float32"):
            return R.add(c, d)

        return inner


@I.ir_module
class Kernels:
    """Kernels written by hand, one of them parallel, with a symbolic length."""

    @T.prim_func
    def blend(pa: T.handle, pb: T.handle, pc: T.handle):
        n = T.int64()
        a = T.match_buffer(pa, (n,), "float32")
        b = T.match_buffer(pb, (n,), "float32")
        c = T.match_buffer(pc, (n,), "float32")
        for i in T.parallel(n):
            c[i] = a[i] * T.float32(0.25) + b[i] * T.float32(0.75)

    @R.function
    def main(a: R.Tensor(("n",), "float32"), b: R.Tensor(("n",), "float32")):
        n = T.int64()
        first = R.call_tir(Kernels.blend, (a, b), out_ty=R.Tensor((n,), "float32"))
        return R.call_tir(Kernels.blend, (first, a), out_ty=R.Tensor((n,), "float32"))


def _f32(*shape):
    return ("float32", list(shape))


#: name: (module, how it is executed, its arguments: element type and shape, or a list of such)
PROGRAMS = {
    "constants": (Constants, "bytecode", [_f32(2, 3)]),
    "symbolic": (Symbolic, "bytecode", [_f32(5, 3), _f32(3, 4)]),
    "symbolic_compiled": (Symbolic, "compiled", [_f32(2, 7), _f32(7, 4)]),
    "branches": (Branches, "bytecode", [("int32", []), _f32(3)]),
    "tuples": (Tuples, "bytecode", [[("int32", [2]), [("int32", [2]), ("float64", [3])]]]),
    "foreign": (Foreign, "bytecode", [_f32(4)]),
    "types": (Types, "bytecode", [("float16", [8]), ("int8", [8]), ("uint8", [8])]),
    "closures": (Closures, "bytecode", [_f32(2, 2), _f32(2, 2)]),
    "kernels": (Kernels, "bytecode", [_f32(100), _f32(100)]),
}
