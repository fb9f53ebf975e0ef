"""Errors that a user meets: each names what was given, where, and what was expected."""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax
from relaxide.script import relax as R


@tvm.script.ir_module
class Double:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")):
        return R.add(x, x)


@pytest.fixture(scope="module")
def machine():
    return relax.VirtualMachine(tvm.compile(Double, "llvm"), tvm.cpu())


def test_a_wrong_shape_names_function_parameter_and_type(machine):
    with pytest.raises(Exception, match=r"fn=main.*param=x.*R\.Tensor\(\(n, 4\)"):
        machine["main"](tvm.runtime.tensor(np.zeros((3, 5), "float32")))


def test_a_wrong_dtype_names_function_and_parameter(machine):
    with pytest.raises(Exception, match=r"fn=main.*param=x"):
        machine["main"](tvm.runtime.tensor(np.zeros((3, 4), "int32")))


def test_a_wrong_number_of_arguments_names_the_parameters(machine):
    with pytest.raises(Exception, match="main.*1.*x"):
        machine["main"]()


def test_an_unknown_function_is_named(machine):
    with pytest.raises(AttributeError, match="nothing"):
        machine["nothing"]


def test_an_unknown_target_is_refused():
    with pytest.raises(ValueError, match="quantum"):
        tvm.target.Target("quantum")


def test_an_unknown_pipeline_names_those_that_exist():
    with pytest.raises(ValueError, match="default_build"):
        tvm.compile(Double, "llvm", relax_pipeline="fastest")


def test_a_file_that_is_no_library_is_refused(tmp_path):
    path = tmp_path / "broken.so"
    path.write_bytes(b"not a library")
    with pytest.raises(Exception, match="broken.so"):
        tvm.runtime.load_module(str(path))


@pytest.mark.parametrize(("offset", "what"), [(0, "magic"), (16, "version")])
def test_a_corrupt_executable_names_the_section(tmp_path, offset, what):
    path = tmp_path / "model.so"
    tvm.compile(Double, "llvm").export_library(path)
    content = bytearray(path.read_bytes())
    content[content.index(bytes.fromhex("1e1514422fde25d2")) + offset] ^= 0x55
    path.write_bytes(content)
    with pytest.raises(Exception, match=f"(?i){what}"):
        relax.VirtualMachine(tvm.runtime.load_module(str(path)), tvm.cpu())


def test_an_unsupported_onnx_operator_is_named():
    from onnx import TensorProto, helper

    node = helper.make_node("NoSuchOperator", ["x"], ["y"], name="odd_node")
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("x", "y")]
    model = helper.make_model(helper.make_graph([node], "g", value[:1], value[1:]))
    with pytest.raises(NotImplementedError, match="(?s)(NoSuchOperator.*odd_node|odd_node.*NoSuchOperator)"):
        relax.frontend.onnx.from_onnx(model)


def test_a_syntax_error_shows_line_and_caret():
    text = """from tvm.script import relax as R
@R.function
def main(x: R.Tensor((3,), "float32")):
    return R.no_such_op(x)
"""
    with pytest.raises(SyntaxError, match=r"(?s)program\.py.*4.*no_such_op.*\^"):
        tvm.script.from_source(text, "program.py")
