"""Gradients: what the pass Gradient makes of each operator agrees with differences of the function itself.

The function is a weighted sum of the operator's result, in double precision; its gradient is compared with central
differences along random directions.
"""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax

RNG = np.random.default_rng(3)


def reals(*shape, low=0.3, high=1.7):
    return RNG.uniform(low, high, shape)


INDEX = np.array([0, 2, 1, 2], "int64")
#: Calls over x0, x1 … that gradients flow into, and their values. What is no gradient's business are constants.
CASES = {
    "add": ("R.add(x0, x1)", [reals(2, 3), reals(3)]),
    "subtract": ("R.subtract(x0, x1)", [reals(2, 1), reals(2, 3)]),
    "multiply": ("R.multiply(x0, x1)", [reals(2, 3), reals(1, 3)]),
    "divide": ("R.divide(x0, x1)", [reals(3), reals(2, 3)]),
    "power": ("R.power(x0, x1)", [reals(2, 3), reals(2, 3)]),
    "maximum": ("R.maximum(x0, x1)", [reals(2, 3), reals(2, 3)]),
    "minimum": ("R.minimum(x0, x1)", [reals(2, 3), reals(3)]),
    **{name: (f"R.{name}(x0)", [reals(2, 3)]) for name in "abs cos exp log negative sigmoid sin sqrt tanh nn.relu nn.silu".split()},
    "abs below zero": ("R.abs(x0)", [-reals(2, 3)]),
    "sum": ("R.sum(x0, axis=[1], keepdims=False)", [reals(2, 3, 2)]),
    "sum all": ("R.sum(x0)", [reals(2, 3)]),
    "mean": ("R.mean(x0, axis=[0, 2], keepdims=False)", [reals(2, 3, 2)]),
    "variance": ("R.variance(x0, axis=[1], keepdims=False)", [reals(2, 4)]),
    "variance kept": ("R.variance(x0, axis=[0], keepdims=True)", [reals(2, 4)]),
    "permute_dims": ("R.permute_dims(x0, axes=[2, 0, 1])", [reals(2, 3, 4)]),
    "concat": ("R.concat((x0, x1), axis=1)", [reals(2, 3), reals(2, 1)]),
    "expand_dims": ("R.expand_dims(x0, axis=[0, 2])", [reals(2, 3)]),
    "reshape": ("R.reshape(x0, R.shape([3, 2]))", [reals(2, 3)]),
    "cumsum": ("R.cumsum(x0, axis=1)", [reals(2, 3)]),
    "broadcast_to": ("R.broadcast_to(x0, R.shape([4, 2, 3]))", [reals(2, 1)]),
    "triu": ("R.triu(x0, R.prim_value(1))", [reals(3, 3)]),
    "take": ('R.take(x0, R.const([0, 2, 1, 2], "int64"), axis=1)', [reals(2, 3)]),
    "where": ('R.where(R.const([True, False, True], "bool"), x0, x1)', [reals(3), reals(3)]),
    "matmul": ("R.matmul(x0, x1, out_dtype=None)", [reals(2, 3, 4), reals(4, 2)]),
    "matmul of a row": ("R.matmul(x0, x1, out_dtype=None)", [reals(4), reals(4, 2)]),
    "matmul of a column": ("R.matmul(x0, x1, out_dtype=None)", [reals(3, 4), reals(4)]),
    "matmul of vectors": ("R.matmul(x0, x1, out_dtype=None)", [reals(4), reals(4)]),
    "astype": ('R.astype(R.astype(x0, dtype="float64"), dtype="float64")', [reals(2, 3)]),
    "nn.softmax": ("R.nn.softmax(x0, axis=1)", [reals(2, 3)]),
    "nn.log_softmax": ("R.nn.log_softmax(x0, axis=0)", [reals(2, 3)]),
    "nn.cross_entropy_with_logits": ("R.nn.cross_entropy_with_logits(x0, x1)", [reals(2, 3), reals(2, 3)]),
    "nn.nll_loss": ('R.nn.nll_loss(x0, R.const([1, 0], "int64"), R.const([0.5, 2.0, 1.0], "float64"))', [reals(2, 3)]),
    "nn.conv2d": ("R.nn.conv2d(x0, x1, strides=[2, 1], padding=[1, 0, 1, 2], dilation=[1, 2])", [reals(2, 3, 6, 7), reals(4, 3, 3, 2)]),
    "nn.max_pool2d": ("R.nn.max_pool2d(x0, pool_size=[2, 2], strides=[2, 1], padding=[0, 1, 0, 1])", [reals(1, 2, 5, 6)]),
    "nn.avg_pool2d": ("R.nn.avg_pool2d(x0, pool_size=[2, 3], strides=[1, 2], padding=[1, 1, 1, 1])", [reals(1, 2, 5, 6)]),
}


def program(call, values):
    """The function's value, and the function of its value and gradients."""
    params = ", ".join(f'x{i}: R.Tensor({v.shape}, dtype="float64")' for i, v in enumerate(values))
    weighted = 'R.multiply(y, R.cos(R.multiply(y, R.const(0.7, "float64"))))'
    source = (
        "# from tvm.script import ir as I\n# from tvm.script import relax as R\n\n@I.ir_module\nclass Module:\n    @R.function\n"
        f"    def main({params}):\n        with R.dataflow():\n            y = {call}\n            z = {weighted}\n"
        "            loss = R.sum(z)\n            R.output(loss)\n        return loss\n"
    )
    module = relax.transform.Gradient("main")(tvm.script.from_source(source))
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    tensors = lambda xs: [tvm.runtime.tensor(np.asarray(x)) for x in xs]  # noqa: E731
    return lambda *xs: float(machine["main"](*tensors(xs)).numpy()), lambda *xs: machine["main_adjoint"](*tensors(xs))


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_slopes(name):
    call, values = CASES[name]
    function, adjoint = program(call, values)
    loss, gradients = adjoint(*values)
    assert np.isclose(float(loss.numpy()), function(*values))
    for i, gradient in enumerate(gradients):
        gradient = gradient.numpy()
        assert gradient.shape == values[i].shape
        for _ in range(3):
            direction, step = RNG.normal(size=values[i].shape), 1e-6
            around = [list(values), list(values)]
            around[0][i], around[1][i] = values[i] + step * direction, values[i] - step * direction
            slope = (function(*around[0]) - function(*around[1])) / (2 * step)
            assert np.isclose((gradient * direction).sum(), slope, rtol=1e-5, atol=1e-6), f"argument {i}"
