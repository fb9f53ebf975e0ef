"""Errors that a user meets: each names what was given, where, and what was expected."""

import ctypes
import traceback

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
    with pytest.raises(Exception, match=r"argument `x` of `main`.*R\.Tensor\(\(n, 4\)"):
        machine["main"](tvm.runtime.tensor(np.zeros((3, 5), "float32")))


def test_a_wrong_dtype_names_function_and_parameter(machine):
    with pytest.raises(Exception, match=r"argument `x` of `main`"):
        machine["main"](tvm.runtime.tensor(np.zeros((3, 4), "int32")))


def test_a_wrong_rank_names_function_parameter_and_type(machine):
    with pytest.raises(ValueError, match=r"argument `x` of `main`.*R\.Tensor\(\(n, 4\).*ndim 2 but get 1"):
        machine["main"](tvm.runtime.tensor(np.zeros(3, "float32")))


@pytest.mark.parametrize(("value", "kind"), [(None, "None"), (3, "int"), ("text", "[Ss]tr")])
def test_what_is_no_tensor_is_named(machine, value, kind):
    with pytest.raises(TypeError, match=rf"argument `x` of `main`.*expect a Tensor but get .*{kind}"):
        machine["main"](value)


def test_a_wrong_device_names_the_kernel_and_its_argument(machine):
    away = Elsewhere(np.zeros((3, 4), "float32"))
    with pytest.raises(ValueError, match=r"(?s)device_type.*add\(.*expected cpu"):
        machine["main"](tvm.ffi.from_dlpack(away))


class Elsewhere:
    """An array that says that it lives on a device which is not there. Its tensors are valid as long as it is."""

    class DLTensor(ctypes.Structure):
        _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32)]
        _fields_ += [("dtype", ctypes.c_uint8 * 4), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p)]
        _fields_ += [("byte_offset", ctypes.c_uint64), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]

    def __init__(self, array):
        self.array, self.dims = array, (ctypes.c_int64 * array.ndim)(*array.shape)
        device, dtype = (ctypes.c_int32 * 2)(2, 0), (ctypes.c_uint8 * 4)(2, 32, 1, 0)
        self.tensor = self.DLTensor(array.ctypes.data, device, array.ndim, dtype, ctypes.addressof(self.dims))

    def __dlpack__(self, **_):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


@pytest.mark.parametrize("count", [0, 2])
def test_a_wrong_number_of_arguments_names_the_parameters(machine, count):
    args = [tvm.runtime.tensor(np.zeros((3, 4), "float32"))] * count
    with pytest.raises(ValueError, match=rf"main expects 1 arguments \(x\), but {count} arguments"):
        machine["main"](*args)


def test_named_arguments_are_checked(machine):
    x = tvm.runtime.tensor(np.ones((3, 4), "float32"))
    with pytest.warns(UserWarning, match='"y" is unused in main'):
        machine.set_input("main", x=x, y=x)
    machine.invoke_stateful("main")
    np.testing.assert_array_equal(machine.get_outputs("main").numpy(), 2 * x.numpy())
    with pytest.raises(ValueError, match="main takes x besides"), pytest.warns(UserWarning):
        machine.set_input("main", y=x)


def test_stateful_calls_out_of_order_say_what_is_missing():
    machine = relax.VirtualMachine(tvm.compile(Double, "llvm"), tvm.cpu())
    with pytest.raises(ValueError, match="set_input"):
        machine.invoke_stateful("main")
    with pytest.raises(ValueError, match="invoke_stateful"):
        machine.get_outputs("main")
    with pytest.raises(ValueError, match="nothing"):
        machine.save_function("nothing", "saved")


def test_an_unknown_function_is_named(machine):
    with pytest.raises(AttributeError, match="nothing"):
        machine["nothing"]


def calling(name):
    """An executable whose `main` hands its argument to a function."""
    ib = relax.ExecBuilder()
    with ib.function("main", num_inputs=1):
        ib.emit_call(name, args=[ib.r(0)], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    return ib.get()


def test_a_missing_kernel_is_named():
    with pytest.raises(ValueError, match="no.such.kernel"):
        relax.VirtualMachine(calling("no.such.kernel"), tvm.cpu())["main"](1)


def test_an_exception_in_a_callback_comes_out_with_its_traceback():
    class Odd(Exception):
        pass

    raised = []

    def innermost(value):
        raised.append(Odd(value))
        raise raised[0]

    tvm.register_global_func("test.errors.callback", lambda value: innermost(value), override=True)
    with pytest.raises(Odd) as caught:
        relax.VirtualMachine(calling("test.errors.callback"), tvm.cpu())["main"](1)
    assert caught.value is raised[0]
    frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert frames == ["test_an_exception_in_a_callback_comes_out_with_its_traceback", "<lambda>", "innermost"]


def test_an_interrupt_in_a_callback_ends_the_program():
    def interrupt(_):
        raise KeyboardInterrupt

    tvm.register_global_func("test.errors.interrupt", interrupt, override=True)
    with pytest.raises(KeyboardInterrupt):
        relax.VirtualMachine(calling("test.errors.interrupt"), tvm.cpu())["main"](1)


@pytest.mark.parametrize("dev", [tvm.cuda(), tvm.cuda(3), tvm.vulkan()])
def test_a_device_that_is_not_there_is_named(dev):
    assert not dev.exist
    with pytest.raises(Exception, match=str(dev)):
        tvm.runtime.empty((2,), device=dev)
    with pytest.raises(Exception, match=str(dev)):
        tvm.runtime.tensor(np.zeros(2)).copyto(dev)
    with pytest.raises(Exception, match=str(dev)):
        relax.VirtualMachine(tvm.compile(Double, "llvm"), dev)
    with pytest.raises(ValueError, match="quantum"):
        tvm.device("quantum")


def test_a_truncated_executable_names_the_section_and_the_place(tmp_path):
    path = tmp_path / "main.exec"
    calling("vm.builtin.copy").mod.write_to_file(path)
    content = path.read_bytes()
    load = tvm.get_global_func("ffi.Module.load_from_bytes.relax.VMExecutable")
    assert load(content)["as_text"]()
    places = set()
    for length in range(len(content)):
        with pytest.raises(ValueError, match=r"cannot read the VM executable: [a-z ]+, byte \d+:") as caught:
            load(content[:length])
        places.add(str(caught.value).split(":")[1].split(",")[0].strip())
    assert {"header", "function table", "instruction data"} <= places
    with pytest.raises(ValueError, match="header.*magic"):
        load(b"\0" + content[1:])
    with pytest.raises(ValueError, match='header.*version is "0.15"'):
        load(content.replace(b"0.14", b"0.15"))


def test_a_truncated_library_is_named(tmp_path):
    path = tmp_path / "short.so"
    tvm.compile(Double, "llvm").export_library(path)
    content = path.read_bytes()
    refused = 0
    for length in range(0, len(content), 61):
        path.write_bytes(content[:length])
        try:  # what follows the last segment is not missed
            tvm.runtime.load_module(path)
        except RuntimeError as error:
            assert "short.so" in str(error) and ("truncated" in str(error) or length < 64)
            refused += 1
    assert refused > 0.5 * len(content) / 61
    with pytest.raises(ValueError, match="cannot find file"):
        tvm.runtime.load_module(tmp_path / "absent.so")


def test_the_builder_says_what_is_wrong():
    with pytest.raises(ValueError, match="inside a function"):
        ib = relax.ExecBuilder()
        ib.emit_ret(ib.r(0))
    with pytest.raises(ValueError, match="does not fit"):
        relax.ExecBuilder().imm(1 << 60)
    ib = relax.ExecBuilder()
    with ib.function("main", num_inputs=1):
        ib.emit_goto(5)
    with pytest.raises(ValueError, match='function "main", instruction 0: it jumps by 5'):
        ib.get()


def test_a_virtual_machine_checks_what_it_is_made_of():
    with pytest.raises(ValueError, match="int"):
        relax.VirtualMachine(3, tvm.cpu())
    with pytest.raises(TypeError, match="str"):
        relax.VirtualMachine(calling("vm.builtin.copy"), "cpu")
    with pytest.raises(ValueError, match="'greedy'.*'naive' or 'pooled'"):
        relax.VirtualMachine(calling("vm.builtin.copy"), tvm.cpu(), memory_cfg="greedy")


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


def test_shapes_are_lists_or_counted():
    with pytest.raises(TypeError, match="are a list"):
        tvm.relax.ShapeType(3)
    with pytest.raises(ValueError, match="not both"):
        tvm.relax.ShapeType([1, 2], ndim=2)


@pytest.mark.parametrize("kind", [AttributeError, ValueError])
def test_an_option_that_nothing_reads_is_an_attribute_that_is_missing(kind):
    with pytest.raises(kind, match="there is no option"):
        tvm.transform.PassContext(config={"tirx.no_such_option": True})


def test_modules_are_imported_by_names():
    module = tvm.IRModule({})
    assert module.script(ir_prefix="I2")
    with pytest.raises(RuntimeError, match="a name"):
        module.script(ir_prefix="2I")
