"""Elements of eight bits and fewer: conversions agree with ml_dtypes in every code, and casts of ONNX with ONNX Runtime."""

import ml_dtypes
import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax
from relaxide.runtime._tensor import array_type

FLOATS = (
    "float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu "
    "float6_e2m3fn float6_e3m2fn float4_e2m1fn"
).split()
INTEGERS = "int4 uint4 int2 uint2".split()


def converted(values, to):
    """What `R.astype` makes of an array."""
    source = str(values.dtype)
    text = f"""
from tvm.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(({len(values)},), "{source}")):
        return R.astype(x, dtype="{to}")
"""
    program = tvm.script.from_source(text)
    machine = relax.VirtualMachine(relax.build(program, target="llvm"), tvm.cpu())
    return machine["main"](tvm.runtime.tensor(values)).numpy()


def assert_same(got, wanted, what):
    """The same bits, of NaN any."""
    assert got.dtype == wanted.dtype, what
    unsigned = f"uint{8 * got.dtype.itemsize}"
    differs = got.view(unsigned) != wanted.view(unsigned)
    with np.errstate(invalid="ignore"):
        differs &= ~(np.isnan(got.astype("float64")) & np.isnan(wanted.astype("float64")))
    assert not differs.any(), (what, got[differs][:8], wanted[differs][:8])


def sweep(name):
    """Single precision: every upper half, all numbers of the type, what lies between them, and the neighbours of that."""
    bits = ml_dtypes.finfo(name).bits
    own = np.arange(1 << bits, dtype="uint8").view(getattr(ml_dtypes, name)).astype("float32")
    own = np.unique(own[np.isfinite(own)])
    between = (own[1:] + own[:-1]) / 2
    near = [np.nextafter(between, np.float32(side), dtype="float32") for side in (-np.inf, np.inf)]
    upper = (np.arange(1 << 16, dtype="uint32") << 16).view("float32")
    return np.concatenate([upper, own, between, *near])


@pytest.mark.parametrize("name", FLOATS)
def test_small_floats_are_those_of_ml_dtypes(name):
    kind = np.dtype(getattr(ml_dtypes, name))
    codes = np.arange(1 << ml_dtypes.finfo(name).bits, dtype="uint8").view(kind)
    for wide in ("float32", "float16"):
        with np.errstate(over="ignore"):
            assert_same(converted(codes, wide), codes.astype("float32").astype(wide), f"{name} to {wide}")
    numbers = sweep(name)
    halves = np.arange(1 << 16, dtype="uint16").view("float16")
    for values in (numbers, halves):
        with np.errstate(invalid="ignore", over="ignore"):
            wanted = values.astype(kind)
        got = converted(values, name)
        if name.startswith(("float6", "float4")):
            # What has no NaN has zeros for it, of which numpy and we know the sign.
            assert (got.view("uint8") == wanted.view("uint8")).all(), name
        else:
            assert_same(got, wanted, f"{values.dtype} to {name}")


@pytest.mark.parametrize("name", INTEGERS)
def test_small_integers_wrap_and_extend(name):
    kind = np.dtype(getattr(ml_dtypes, name))
    numbers = np.arange(-300, 301, dtype="int32")
    small = numbers.astype(kind)
    got = converted(numbers, name)
    assert got.dtype == kind and (got == small).all()
    assert (converted(small, "int32") == small.astype("int32")).all()
    assert (converted(small, "float32") == small.astype("float32")).all()


def test_elements_of_less_than_a_byte_have_no_gaps():
    for name, count, size in (("int4", 5, 3), ("float4_e2m1fn", 4, 2), ("uint2", 5, 2), ("float6_e3m2fn", 4, 3)):
        values = (np.arange(count, dtype="uint8") % 4).view(getattr(ml_dtypes, name))
        tensor = tvm.runtime.tensor(values)
        assert len(tensor._bytes()) == size, name
        assert (tensor.numpy().view("uint8") == values.view("uint8")).all(), name


@pytest.mark.parametrize("name", ["float8_e5m2", "float4_e2m1fn", "int4", "uint2", "bfloat16", "float32", "int32", "bool"])
def test_constants_keep_their_elements(name):
    constant = relax.const([0, 1, 2, -1], name)
    wanted = np.array([0, 1, 2, -1]).astype(array_type(tvm.ffi.dtype(name)))
    assert constant.data.numpy().tobytes() == wanted.tobytes() and constant.ty.dtype == name


@pytest.mark.parametrize("saturate", [1, 0])
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"])
def test_casts_saturate_as_onnx_runtime_does(name, saturate):
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper

    from relaxide.relax.frontend.onnx import from_onnx

    values = sweep("float8_e5m2")
    nodes = [
        helper.make_node("Cast", ["x"], ["y"], to=getattr(TensorProto, name.upper().replace("_", "")), saturate=saturate),
        helper.make_node("Cast", ["y"], ["z"], to=TensorProto.FLOAT),
    ]
    ends = [helper.make_tensor_value_info(end, TensorProto.FLOAT, [len(values)]) for end in "xz"]
    model = helper.make_model(helper.make_graph(nodes, "casts", ends[:1], ends[1:]), opset_imports=[helper.make_opsetid("", 19)])
    model.ir_version = 9
    if saturate:
        wanted = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": values})[0]
    else:
        # Just beyond the largest number ONNX Runtime keeps to no rule of rounding then.
        with np.errstate(invalid="ignore", over="ignore"):
            wanted = values.astype(getattr(ml_dtypes, name)).astype("float32")
    machine = relax.VirtualMachine(relax.build(from_onnx(model), target="llvm"), tvm.cpu())
    got = machine["main"](tvm.runtime.tensor(values)).numpy()
    assert_same(got, wanted, name)


def test_kernels_say_their_lines_where_a_pass_context_asks(tmp_path):
    program = tvm.script.from_source(
        "from tvm.script import ir as I, relax as R\n"
        "@I.ir_module\nclass Module:\n    @R.function\n    def main(x: R.Tensor((8,), 'float32')):\n        return R.exp(x)\n"
    )
    text, library = tmp_path / "model.so.py", tmp_path / "model.so"
    with tvm.transform.PassContext(config={"relaxide.debug_info": str(text)}):
        relax.build(program, target="llvm").export_library(str(library))
    assert "def tir_exp(" in text.read_text()
    assert b"model.so.py\0" in library.read_bytes() and b".debug_line\0" in library.read_bytes()
