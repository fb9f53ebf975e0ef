"""Programs that the C++ checks call. A library is loaded with all the functions that it asks for, so each has its own."""

from relaxide.script import ir as I
from relaxide.script import relax as R


@I.ir_module
class Plain:
    @R.function
    def double(x: R.Tensor((3,), "float32")):
        return R.add(x, x)

    @R.function
    def pair(x: R.Tensor((3,), "float32")):
        return (R.add(x, x), R.multiply(x, x))


@I.ir_module
class Scaled:
    @R.function(pure=False)
    def main(x: R.Tensor((3,), "float32")):
        y = R.call_packed("test.cpp.scale", x, R.prim_value(0.5), R.prim_value(7), ty_args=(R.Tensor((3,), "float32"),))
        return y


@I.ir_module
class Echo:
    @R.function(pure=False)
    def echo(x: R.Object) -> R.Object:
        y = R.call_packed("test.cpp.echo", x, ty_args=(R.Object,))
        return y
