"""What a caller of the importer says beside the model: lengths of dimensions (`dims=`), by names of the file or the program."""

import numpy as np
import pytest
from google.protobuf.message import EncodeError
from onnx import TensorProto, helper, parser

import relaxide as tvm
from relaxide.relax.frontend.onnx import from_onnx

MODEL = """<ir_version: 10, opset_import: ["": 18]>
g (float[batch, length] x, float[length] w) => (float[batch, length] y) <int64 one = {1}> { s = CumSum (x, one)
  p = Mul (s, w)
  y = CumSum (p, one) }"""


def imported(**options):
    return from_onnx(parser.parse_model(MODEL), **options)


def run(module, batch, length):
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((batch, length)).astype("float32"), rng.standard_normal(length).astype("float32")
    machine = tvm.relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    y = machine["main"](tvm.runtime.tensor(x), tvm.runtime.tensor(w)).numpy()
    np.testing.assert_allclose(y, np.cumsum(np.cumsum(x, 1) * w, 1), rtol=1e-4, atol=1e-4)


def shape_of(module):
    return [getattr(dim, "name", None) or dim.value for dim in module["main"].params[0].ty.shape]


def test_lengths_within_the_range_run():
    module = imported(dims={"batch": (1, 8), "length": (2, None)})
    for batch, length in [(1, 2), (8, 100)]:
        run(module, batch, length)


def test_lengths_beyond_the_memory_that_is_planned_are_refused():
    module = imported(dims={"batch": (1, 8), "length": (None, 16)})
    run(module, 8, 16)
    with pytest.raises(ValueError, match="does not fit the storage"):
        run(module, 9, 16)


def test_ranges_are_the_bounds_that_memory_is_planned_with():
    bounded = imported(dims={"batch": (None, 8), "length": (None, 16)})
    assert dict(bounded["main"].attrs["tir_var_upper_bound"]) == {"batch": 8, "length": 16}
    assert "tir_var_lower_bound" not in bounded["main"].attrs


def test_one_length_makes_the_dimension_that_number():
    module = imported(dims={"batch": 3})
    assert shape_of(module) == [3, "length"]
    run(module, 3, 5)


def test_dimensions_that_shape_dict_names_have_ranges_too():
    module = imported(shape_dict={"x": ["rows", 16], "w": [16]}, dims={"rows": (1, 4)})
    assert shape_of(module) == ["rows", 16]
    run(module, 4, 16)
    with pytest.raises(ValueError, match="does not fit the storage"):
        run(module, 5, 16)


@pytest.mark.parametrize(
    "dims, message",
    [
        ({"bach": (1, 8)}, r'no symbolic dimension "bach"\n.*known symbolic dimensions: batch'),
        ({"batch": (8, 1)}, r'dims\["batch"\]: no length is 8 or more and 1 or less'),
        ({"batch": -1}, r'dims\["batch"\]: -1 is no length of a dimension'),
        ({"batch": "1..8"}, r'dims\["batch"\] is 1..8; expected a length, or the least and the greatest as \(1, 8\)'),
    ],
)
def test_what_is_no_range_is_named(dims, message):
    with pytest.raises(Exception, match=message):
        imported(dims=dims)


def test_names_are_those_of_the_file_or_those_of_the_program():
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("Neg", ["onnx::x.1"], ["y"])],
            "g",
            [helper.make_tensor_value_info("onnx::x.1", TensorProto.FLOAT, ["batch-size", "n"])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        ),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=8,
    )
    for name, dim in [("onnx::x.1", "batch-size"), ("onnx__x_1", "batch_size")]:
        module = from_onnx(model, dims={dim: (1, 8), "n": 4})
        assert dict(module["main"].attrs["tir_var_upper_bound"]) == {"batch_size": 8}
        module = from_onnx(model, shape_dict={name: [2, 3]})
        assert shape_of(module) == [2, 3]


def test_a_model_that_protobuf_cannot_hold_is_said_to_be_too_large(tmp_path):
    class Large:
        """Stands for a message of more than 2 GB, which the test would take too long to make."""

        def SerializeToString(self):
            raise EncodeError("Failed to serialize proto")

    with pytest.raises(ValueError, match="at most 2 GB.*save_as_external_data=True"):
        from_onnx(Large())
    path = tmp_path / "large.onnx"
    with open(path, "wb") as file:
        file.truncate((1 << 31) + 1)
    with pytest.raises(ValueError, match="2147483649 bytes(.|\n)*save_as_external_data=True"):
        from_onnx(path)
