"""Layout rules: behind a convolution whose layout changes, every operator gives what it gave, and most need no transpose.

The module is that of a convolution and the operator; ``ConvertLayout`` brings the convolution to ``NHWC``.
"""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax

RNG = np.random.default_rng(5)
#: Calls over y (the convolution's result, 2x4x6x5), w (of its shape), c (4x1x1) and v (4), and whether the layout flows through:
#: then only the operands and the result are transposed.
CASES = {
    **{name: (f"R.{name}(y)", True) for name in "abs exp negative sigmoid tanh nn.relu nn.gelu isfinite".split()},
    "add": ("R.add(y, w)", True),
    "multiply by channels": ("R.multiply(y, c)", True),
    "maximum of a scalar": ('R.maximum(y, R.const(0.0, "float32"))', True),
    "sum": ("R.sum(y, axis=[1, 3], keepdims=False)", True),
    "max kept": ("R.max(y, axis=[2], keepdims=True)", True),
    "mean of all": ("R.mean(y)", True),
    "concat": ("R.concat((y, w), axis=1)", True),
    "split": ("R.split(y, indices_or_sections=2, axis=1)[1]", True),
    "stack": ("R.stack((y, w), axis=1)", True),
    "expand_dims": ("R.expand_dims(y, axis=[1])", True),
    "squeeze": ("R.squeeze(R.expand_dims(y, axis=[2]), axis=[2])", True),
    "permute_dims": ("R.permute_dims(y, axes=[3, 1, 0, 2])", True),
    "strided_slice": ("R.strided_slice(y, (1, 2), (1, 0), (3, 6), (1, 2), assume_inbound=False)", True),
    "flip": ("R.flip(y, axis=1)", True),
    "tile": ("R.tile(y, repeats=[1, 2, 1, 1])", True),
    "repeat": ("R.repeat(y, repeats=2, axis=1)", True),
    "astype": ('R.astype(y, dtype="float64")', True),
    "nn.softmax": ("R.nn.softmax(y, axis=1)", True),
    "nn.prelu": ("R.nn.prelu(y, v, axis=1)", True),
    "nn.batch_norm": ("R.nn.batch_norm(y, v, v, v, v, axis=1, training=False)[0]", True),
    "nn.layer_norm": ("R.nn.layer_norm(y, v, v, axes=[1])", True),
    "nn.group_norm": ("R.nn.group_norm(y, v, v, num_groups=2, channel_axis=1, axes=[2, 3])", True),
    "nn.instance_norm": ("R.nn.instance_norm(y, v, v, channel_axis=1, axes=[2, 3])", True),
    "nn.rms_norm": ("R.nn.rms_norm(y, v, axes=[1])", True),
    "nn.dropout": ("R.nn.dropout(y)[0]", True),
    "nn.max_pool2d": ("R.nn.max_pool2d(y, pool_size=[2, 2], strides=[2, 2])", True),
    "nn.avg_pool2d": ("R.nn.avg_pool2d(y, pool_size=[2, 3], padding=[1, 1])", True),
    "nn.adaptive_avg_pool2d": ("R.nn.adaptive_avg_pool2d(y, output_size=[2, 2])", True),
    "image.resize2d": ("R.image.resize2d(y, R.shape([8, 7]))", True),
    "nn.conv2d": ("R.nn.conv2d(y, k, padding=[1, 1])", True),
    "nn.conv2d_transpose": ("R.nn.conv2d_transpose(y, k, strides=[2, 2])", True),
    "reshape": ("R.reshape(y, R.shape([2, 24, 5]))", False),
    "matmul": ("R.matmul(y, R.permute_dims(w, axes=[0, 1, 3, 2]))", False),
    "add a row": ("R.add(y, R.strided_slice(w, (0, 1, 2), (0, 0, 0), (1, 1, 1), assume_inbound=False))", None),
    "gather_elements": ('R.gather_elements(y, R.astype(R.multiply(R.sigmoid(w), R.const(3.0, "float32")), dtype="int64"), axis=1)', None),
    "cumsum": ("R.cumsum(y, axis=1)", False),
}
SHAPES = {"x": (2, 3, 6, 5), "f": (4, 3, 3, 3), "w": (2, 4, 6, 5), "c": (4, 1, 1), "v": (4,), "k": (4, 4, 3, 3)}
VALUES = {name: RNG.uniform(0.1, 1, shape).astype("float32") for name, shape in SHAPES.items()}
#: Calls that take the blocks of channels as they come; all others get their operands in the program's order.
BLOCKWISE = set(
    "abs exp negative sigmoid tanh nn.relu nn.gelu isfinite add concat astype nn.max_pool2d nn.avg_pool2d nn.adaptive_avg_pool2d image.resize2d nn.conv2d_transpose nn.dropout".split()
) | {"sum", "max kept", "mean of all"}
#: Operators in layouts that split axes: the call over x and f, and the layouts.
PACKED = {
    "nn.conv1d": ("R.nn.conv1d(x, f, padding=[1, 1], strides=[2])", [(2, 4, 7), (6, 4, 3)], ["NCW2c", "OIW2o"]),
    "nn.conv1d of blocks in front": ("R.nn.conv1d(x, f)", [(2, 4, 7), (6, 4, 3)], ["N2cCW", "3oOWI"]),
    "nn.conv2d": ("R.nn.conv2d(x, f, padding=[1, 0])", [(2, 4, 6, 5), (6, 4, 3, 2)], ["NCHW4c", "OIHW2i3o", "NCHW2c"]),
    "nn.conv2d of plain weights": ("R.nn.conv2d(x, f)", [(2, 4, 6, 5), (6, 4, 3, 2)], ["NCHW2c", "OIHW"]),
    "nn.conv2d to a plain result": ("R.nn.conv2d(x, f)", [(2, 4, 6, 5), (6, 4, 3, 2)], ["NCHW2c", "OIHW2i", "NHWC"]),
    "nn.conv2d of split space": ("R.nn.conv2d(x, f, padding=[1, 1])", [(2, 4, 6, 5), (6, 4, 3, 3)], ["NCHW3h", "OIHW", "NCHW"]),
    "nn.conv2d in groups": ("R.nn.conv2d(x, f, groups=2)", [(2, 8, 6, 5), (6, 4, 3, 2)], ["NCHW4c", "OIHW3o", "NCHW2c"]),
    "nn.conv2d by channel": ("R.nn.conv2d(x, f, groups=4)", [(2, 4, 6, 5), (4, 1, 3, 2)], ["NCHW2c", "OIHW2o"]),
    "nn.conv3d": ("R.nn.conv3d(x, f)", [(1, 4, 5, 6, 5), (2, 4, 2, 3, 2)], ["NCDHW2c", "OIDHW2o"]),
    "nn.conv2d_transpose": ("R.nn.conv2d_transpose(x, f, strides=[2, 2], padding=[1, 1])", [(2, 4, 4, 5), (4, 6, 3, 3)], ["NCHW2c", "IOHW2o"]),
    "nn.conv2d_transpose of tiles": ("R.nn.conv2d_transpose(x, f, strides=[2, 2])", [(2, 4, 4, 5), (4, 6, 2, 2)], ["NCHW2c", "IOHW2i3o"]),
    "nn.max_pool1d": ("R.nn.max_pool1d(x, pool_size=[3])", [(2, 4, 7)], ["NCW2c"]),
    "nn.avg_pool3d": ("R.nn.avg_pool3d(x, pool_size=[2, 2, 2])", [(2, 4, 4, 5, 4)], ["NCDHW4c"]),
    "nn.adaptive_avg_pool1d": ("R.nn.adaptive_avg_pool1d(x, output_size=[3])", [(2, 4, 7)], ["NCW2c"]),
    "image.resize2d": ("R.image.resize2d(x, R.shape([5, 9]))", [(2, 4, 4, 6)], ["NCHW2c"]),
}


def module(call):
    params = ", ".join(f'{name}: R.Tensor({shape}, dtype="float32")' for name, shape in SHAPES.items())
    return tvm.script.from_source(
        "# from tvm.script import ir as I\n# from tvm.script import relax as R\n\n@I.ir_module\nclass Module:\n    @R.function\n"
        f"    def main({params}):\n        with R.dataflow():\n            y = R.nn.conv2d(x, f, padding=[1, 1])\n            z = {call}\n"
        "            R.output(z)\n        return z\n"
    )


def run(mod):
    machine = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
    return machine["main"](*(tvm.runtime.tensor(v) for v in VALUES.values())).numpy()


@pytest.mark.parametrize("name", CASES)
def test_a_layout_flows_through_and_changes_no_value(name):
    call, flows = CASES[name]
    before = module(call)
    after = relax.transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})(before)
    text = after.script()
    assert 'data_layout="NHWC"' in text
    np.testing.assert_allclose(run(after), run(before), rtol=1e-4, atol=1e-5)
    if flows is None:
        return
    # The convolution's result comes back through a transpose only where the operator cannot take it.
    result = [line for line in text.splitlines() if "R.permute_dims(y," in line]
    direct = [line for line in result if "lv" in line.split(":")[0] and name != "permute_dims"]
    assert bool(direct) != flows, text


@pytest.mark.parametrize("name", CASES)
def test_blocks_flow_through_and_change_no_value(name):
    call, _ = CASES[name]
    before = module(call)
    after = relax.transform.ConvertLayout({"relax.nn.conv2d": ["NCHW2c", "OIHW2o"]})(before)
    text = after.script()
    assert "layout_transform" not in text or name in ("nn.conv2d",), "three channels of the image are no blocks of two"
    after = relax.transform.ConvertLayout({"relax.nn.conv2d": ["NCHW", "OIHW2o", "NCHW2c"]})(before)
    text = after.script()
    assert 'out_layout="NCHW2c"' in text
    np.testing.assert_allclose(run(after), run(before), rtol=1e-4, atol=1e-5)
    unpacked = any("R.layout_transform(y," in line for line in text.splitlines() if "lv" in line.split(":")[0])
    assert unpacked == (name not in BLOCKWISE and "scalar" not in name), text


@pytest.mark.parametrize("name", PACKED)
def test_a_call_on_blocks_gives_what_it_gives_without(name):
    call, shapes, wanted = PACKED[name]
    values = [RNG.uniform(-1, 1, shape).astype("float32") for shape in shapes]
    params = ", ".join(f'{param}: R.Tensor({shape}, dtype="float32")' for param, shape in zip("xf", shapes))
    before = tvm.script.from_source(
        "# from tvm.script import ir as I\n# from tvm.script import relax as R\n\n@I.ir_module\nclass Module:\n    @R.function\n"
        f"    def main({params}):\n        with R.dataflow():\n            z = {call}\n            R.output(z)\n        return z\n"
    )
    after = relax.transform.ConvertLayout({"relax." + name.split()[0]: wanted})(before)
    assert f'layout="{wanted[0]}"' in after.script()

    def call_of(mod):
        machine = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
        return machine["main"](*(tvm.runtime.tensor(v) for v in values)).numpy()

    np.testing.assert_allclose(call_of(after), call_of(before), rtol=1e-4, atol=1e-5)


def test_a_function_says_the_layouts_of_each_call():
    seen = []

    def wanted(call):
        seen.append(call.op.name)
        return {"relax.nn.conv2d": ["NHWC", "OHWI"]} if len(seen) == 1 else {}

    before = module("R.nn.conv2d(R.nn.relu(y), k, padding=[1, 1])")
    after = relax.transform.ConvertLayout({}, wanted)(before)
    assert seen == ["relax.nn.conv2d", "relax.nn.relu", "relax.nn.conv2d"]
    assert after.script().count('data_layout="NHWC"') == 2, "the second follows the first"
    np.testing.assert_allclose(run(after), run(before), rtol=1e-4, atol=1e-5)

    def fails(call):
        raise KeyError("nothing is wanted")

    with pytest.raises(KeyError, match="nothing is wanted"):
        relax.transform.ConvertLayout({}, fails)(before)
    with pytest.raises(ValueError, match="no operator"):
        relax.transform.ConvertLayout({}, lambda call: {"relax.nothing": ["NHWC"]})(before)
