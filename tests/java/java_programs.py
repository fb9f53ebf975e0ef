"""Programs that the Java package calls: one library with functions of several kinds."""

from relaxide.script import ir as I
from relaxide.script import relax as R
from relaxide.script import tirx as T


@I.ir_module
class Programs:
    @R.function
    def main(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 4), "float32")):
        n = T.int64()
        return R.nn.softmax(R.nn.relu(R.matmul(x, w)))

    @R.function
    def pair(x: R.Tensor(("n", 2), "float32")):
        n = T.int64()
        return (R.add(x, x), (R.shape([n, n + 1]), R.multiply(x, x)))

    @R.function
    def same(a: R.Prim("int64"), s: R.Shape, t: R.Object):
        return (a, s, t)

    @R.function(pure=False)
    def echo(x: R.Object) -> R.Object:
        y = R.call_packed("test.java.echo", x, ty_args=(R.Object,))
        return y

    @R.function(pure=False)
    def scaled(x: R.Tensor((3,), "float32")):
        y = R.call_dps_packed("test.java.triple", (x,), out_ty=R.Tensor((3,), "float32"))
        return y
