"""Arguments that a program computes: one compiled program gives what ONNX Runtime gives, for every value of them.

All inputs have symbolic dimensions, except that the lengths of lists are fixed.
"""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from relaxide.onnx_backend import RelaxideBackend

RNG = np.random.default_rng(7)


def ints(*values):
    return np.array(values, "int64")


def reals(*shape):
    return RNG.uniform(-2, 2, shape).astype("float32")


def model(op, arrays, fixed=(), attrs=None, outputs=1, opset=18):
    """A model of one node; inputs named in `fixed` keep their dimensions."""
    infos, names = [], []
    for i, array in enumerate(arrays):
        if array is None:
            names.append("")
            continue
        names.append(f"x{i}")
        dims = list(array.shape) if i in fixed else [f"d{i}_{axis}" for axis in range(array.ndim)]
        infos.append(helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(array.dtype), dims))
    out = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, out, **(attrs or {}))
    results = [onnx.ValueInfoProto(name=name) for name in out]
    graph = helper.make_graph([node], "case", infos, results)
    built = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    built.ir_version = 8
    return built


def check(op, runs, fixed=(), **options):
    """The same program for several lists of inputs."""
    built = model(op, runs[0], fixed, **options)
    program = RelaxideBackend.prepare(built)
    typed = onnx.shape_inference.infer_shapes(built)
    for info, kind in zip(typed.graph.output, typed.graph.output):
        if not info.type.tensor_type.elem_type:
            info.type.tensor_type.elem_type = TensorProto.FLOAT
    session = onnxruntime.InferenceSession(typed.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [info.name for info in built.graph.input]
    for arrays in runs:
        given = [array for array in arrays if array is not None]
        expected = session.run(None, dict(zip(names, given)))
        got = program.run(given)
        assert len(got) == len(expected)
        for ours, theirs in zip(got, expected):
            assert ours.shape == theirs.shape
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_slices_with_steps_in_both_directions():
    x, y = reals(5, 6, 3), reals(2, 9, 3)
    check(
        "Slice",
        [
            [x, ints(1, -1), ints(9, -100), ints(0, 1), ints(2, -1)],
            [y, ints(-2, 1), ints(2**62, 7), ints(-3, 1), ints(1, 3)],
            [x, ints(3, 0), ints(1, 2), ints(2, 0), ints(1, 1)],
        ],
        fixed=(1, 2, 3, 4),
    )


def test_shapes_with_copied_and_open_dimensions():
    check("Reshape", [[reals(4, 6), ints(0, 2, -1)], [reals(2, 10), ints(-1, 5, 2)]], fixed=(1,))


def test_a_shape_of_another_count_is_an_error():
    program = RelaxideBackend.prepare(model("Reshape", [reals(4, 6), ints(5, 5)], fixed=(1,)))
    with pytest.raises(Exception, match="the product of the new sizes is 25, the number of elements is 24"):
        program.run([reals(4, 6), ints(5, 5)])


@pytest.mark.parametrize("length, target", [(7, (2, 2)), (12, (5, 3)), (1, (0, 4))])
def test_a_shape_that_does_not_fit_is_told_with_its_numbers(length, target):
    program = RelaxideBackend.prepare(model("Reshape", [reals(4), ints(2, 2)], fixed=(1,)))
    with pytest.raises(ValueError, match="in Reshape") as refusal:
        program.run([reals(length), ints(*target)])
    asked = (target[0] or length) * target[1]
    assert f"the product of the new sizes is {asked}, the number of elements is {length}" in str(refusal.value)


def test_parts_that_do_not_fit_are_told_with_their_numbers():
    program = RelaxideBackend.prepare(model("Split", [reals(5), ints(2, 3)], fixed=(1,), outputs=2))
    with pytest.raises(ValueError, match="in Split") as refusal:
        program.run([reals(6), ints(2, 3)])
    assert "their sum is 5, dimension 0 is 6" in str(refusal.value)


def test_expansion():
    check("Expand", [[reals(3, 1), ints(2, 1, 5)], [reals(1, 4), ints(2, 3, 1)], [reals(3, 4), ints(1, 1, 1)]], fixed=(1,))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_padding(mode):
    runs = [[reals(4, 5), ints(1, 2, 0, 3)], [reals(3, 4), ints(0, 0, 2, 1)]]
    if mode == "constant":
        runs = [[*run, np.array(1.5, "float32")] for run in runs] + [[reals(4, 5), ints(-1, 1, 0, -2), np.array(0, "float32")]]
    check("Pad", runs, fixed=(1,), attrs={"mode": mode})


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceMean", "ReduceL2", "ReduceLogSumExp"])
@pytest.mark.parametrize("keep", [0, 1])
def test_reductions(op, keep):
    runs = [[reals(2, 3, 4), ints(0, 2)], [reals(5, 1, 2), ints(-1, 1)]]
    check(op, runs, fixed=(1,), attrs={"keepdims": keep})


def test_the_largest_few():
    check("TopK", [[reals(3, 7), ints(2)], [reals(2, 5), ints(5)], [reals(2, 5), ints(1)]], fixed=(1,), outputs=2)


def test_parts():
    check("Split", [[reals(6, 2), ints(1, 5)], [reals(4, 3), ints(2, 2)]], fixed=(1,), outputs=2)
    program = RelaxideBackend.prepare(model("Split", [reals(6, 2), ints(1, 5)], fixed=(1,), outputs=2))
    with pytest.raises(Exception, match="their sum is 5, dimension 0 is 6"):
        program.run([reals(6, 2), ints(1, 4)])


def test_axes_that_come_and_go():
    check("Unsqueeze", [[reals(2, 3), ints(0, 3)], [reals(4, 5), ints(-1, 1)]], fixed=(1,))
    check("Squeeze", [[reals(1, 3, 1), ints(0, 2)], [reals(4, 1, 1), ints(-1, 1)]], fixed=(1,))


def test_repeats_ranges_and_depths():
    check("Tile", [[reals(2, 3), ints(2, 1)], [reals(1, 2), ints(1, 3)]], fixed=(1,))
    scalars = [[np.array(v, "float32") for v in run] for run in ((0, 5, 1.5), (3, -2, -0.5), (1, 0, 1))]
    check("Range", scalars)
    values = np.array([-1, 3], "float32")
    check("OneHot", [[ints(0, 2, -1), ints(3), values], [ints(4, 1), ints(6), values]], fixed=(1, 2))


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_scales(mode):
    scales = [np.array(s, "float32") for s in ([1, 1, 2, 1.5], [1, 1, 0.5, 3])]
    runs = [[reals(1, 2, 4, 6), None, s] for s in scales]
    check("Resize", runs, fixed=(2,), attrs={"mode": mode})


def test_dimensions_of_one_are_broadcast_when_the_program_runs():
    runs = [(3, 1), (1, 3), (3, 3), (1, 1)]
    check("Add", [[reals(a, 4), reals(b, 4)] for a, b in runs])
    check("Where", [[reals(a, 4) > 0, reals(b, 4), reals(1, 4)] for a, b in runs])
    program = RelaxideBackend.prepare(model("Add", [reals(3, 4), reals(2, 4)]))
    with pytest.raises(Exception, match="lengths must be the same, or 1"):
        program.run([reals(3, 4), reals(2, 4)])


@pytest.mark.parametrize(
    ("op", "indices"),
    [("Gather", ints(0, -1, 3)), ("GatherElements", ints(0, -1, 3)), ("GatherND", ints(0, -1, 3).reshape(3, 1))],
)
def test_what_is_gathered_from_nothing_is_an_error(op, indices):
    program = RelaxideBackend.prepare(model(op, [reals(4), indices], fixed=(1,)))
    full = program.run([reals(4), indices])[0]
    assert full.shape == (3,) and full.all()
    with pytest.raises(IndexError, match="outside of the extent 0"):
        program.run([reals(0), indices])
