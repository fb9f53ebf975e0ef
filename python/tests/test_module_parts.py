"""Names where TVM's files have them, and small things that scripts ask for."""

import importlib
import subprocess
import sys

import numpy as np
import pytest
import relaxide as tvm
from relaxide import _parts, relax

ALL = [f"relaxide.{whole}.{part}" for whole, parts in _parts._PARTS.items() for part in parts.split()]


@pytest.mark.parametrize("name", ALL)
def test_a_part_can_be_imported_first(name):
    importlib.import_module(".".join(name.split(".")[:2]))
    part = importlib.import_module(name)
    if name != "relaxide.script.relax.entry":  # Every name means something to the parser.
        assert not hasattr(part, "surely_not_a_name")


def test_a_part_has_the_very_functions():
    from relaxide.relax.op.nn.nn import conv2d
    from relaxide.topi.nn.pooling import pool2d
    from relaxide.topi.reduction import sum

    assert (sum, pool2d, conv2d) == (tvm.topi.sum, tvm.topi.nn.pool2d, relax.op.nn.conv2d)


def test_readers_are_where_the_parser_is():
    from relaxide.script.parser.ir.entry import ir_module
    from relaxide.script.parser.relax.entry import function
    from relaxide.script.parser.tirx.entry import prim_func

    assert (ir_module, function, prim_func) == (tvm.script.ir.ir_module, tvm.script.relax.function, tvm.script.tirx.prim_func)
    assert importlib.import_module("relaxide.script.parser.tirx") is tvm.script.tirx


def test_a_part_does_not_hide_a_function():
    assert callable(tvm.topi.nn.batch_norm)
    assert callable(tvm.tirx.build)


@pytest.mark.parametrize("name", ["rpc_server", "rpc_tracker", "rpc_proxy", "query_rpc_tracker"])
def test_programs_tell_their_options(name):
    done = subprocess.run([sys.executable, "-m", f"relaxide.exec.{name}", "--help"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "--port" in done.stdout


def test_weights_are_taken_out_of_a_module():
    x = relax.Var("x", relax.TensorType([2], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(x)
    Module = builder.get()
    weights = [tvm.runtime.tensor(np.ones(2, "float32"))]
    Module["main"] = Module["main"].with_attr("params", weights)
    bare, params = relax.frontend.detach_params(Module)
    assert "params" not in (bare["main"].attrs or {})
    assert [weight.numpy().tolist() for weight in params["main"]] == [[1, 1]]


def test_names_are_given_once():
    supply = tvm.ir.UniqueNameSupply("p")
    assert [supply.fresh_name("x"), supply.fresh_name("x"), supply.fresh_name("x", add_prefix=False)] == ["p_x", "p_x_1", "x"]
    assert supply.reserve_name("y") == "p_y"
    assert supply.contains_name("y")
    assert supply.fresh_name("y") == "p_y_1"
    assert [supply.fresh_name(""), supply.fresh_name("")] == ["p_v", "p_v_1"]


def test_a_function_without_a_name_gets_one_that_is_free():
    func = relax.Function([], relax.Tuple([]))
    module = tvm.IRModule.from_expr(func, {tvm.ir.GlobalVar("main"): func})
    assert sorted(var.name_hint for var in module.get_global_vars()) == ["main", "main_1"]


def test_a_literal_has_the_type_that_holds_it():
    made = [tvm.runtime.const(value) for value in (True, 3, 2**40, 1.5)]
    assert [str(value.dtype) for value in made] == ["bool", "int32", "int64", "float32"]
    assert str(tvm.runtime.const(3, "uint8").dtype) == "uint8"


def test_the_target_of_this_machine_is_found():
    target = tvm.target.Target.from_device("cpu")
    assert target.kind == "llvm"
    assert tvm.target.Target(target.export()) == target
    assert target.with_host("llvm").host.kind == "llvm"
    with pytest.raises(ValueError, match="of kind cuda cannot be detected"):
        tvm.target.Target.from_device(tvm.cuda(0))


def test_patterns_that_came_last_are_tried_first():
    from relaxide.relax.backend import get_pattern, get_patterns_with_prefix, register_patterns
    from relaxide.relax.dpl import is_op, wildcard

    relu = is_op("relax.nn.relu")(wildcard())
    register_patterns([("surface.relu", relu), ("surface.other", relu)])
    assert [pattern.name for pattern in get_patterns_with_prefix("surface.")] == ["surface.other", "surface.relu"]
    assert get_pattern("surface.relu").name == "surface.relu"
    assert get_pattern("surface.none") is None
    with pytest.raises(TypeError, match="not str"):
        register_patterns(["relu"])


def test_a_tensor_of_a_variable_shape_has_what_is_known_of_it():
    known = relax.Var("s", relax.ShapeType([2, 3]))
    ranked = relax.Var("s", relax.ShapeType(ndim=2))
    assert relax.TensorType(known, "float32") == relax.TensorType([2, 3], "float32")
    assert relax.TensorType(ranked, "float32") == relax.TensorType(dtype="float32", ndim=2)
    with pytest.raises(ValueError, match="has 2 dimensions"):
        relax.TensorType(ranked, "float32", ndim=3)


def test_attributes_are_items_and_attributes():
    made = tvm.ir.make_node("ir.DictAttrs", x=1, name="xyz", padding=(0, 2))
    assert isinstance(made, tvm.ir.Attrs)
    assert (made.x, made["name"], made.get_int_tuple("padding"), "y" in made) == (1, "xyz", (0, 2), False)
    with pytest.raises(AttributeError, match="there is no attribute 'y'; there are: x, name, padding"):
        made.y  # noqa: B018
    x = relax.Var("x", relax.TensorType([2], "float32"))
    assert relax.Function([x], x).attrs == {}


def test_what_a_build_gives_is_an_executable():
    A = tvm.te.placeholder((4,), "float32")
    func = tvm.te.create_prim_func([A, tvm.te.compute((4,), lambda i: A[i] + 1)])
    built = tvm.compile(func, target="llvm")
    assert isinstance(built, tvm.runtime.Executable)
    around = tvm.runtime.Executable(built)
    out = tvm.runtime.tensor(np.zeros(4, "float32"))
    around(tvm.runtime.tensor(np.ones(4, "float32")), out)
    assert out.numpy().tolist() == [2, 2, 2, 2]
    with pytest.raises(NotImplementedError, match="without a compiler"):
        built.export_library("lib.so", fcompile=print)


def test_an_index_out_of_range_is_named():
    pair = relax.Tuple([relax.const(1), relax.const(2)])
    with pytest.raises(IndexError, match="Tuple index out of range: 2 of 2"):
        pair[2]
    with pytest.raises(IndexError, match="ShapeExpr index out of range: 3 of 1"):
        relax.ShapeExpr([1])[3]


def test_a_call_that_python_makes_may_name_functions_of_the_module():
    from relaxide.script import ir as I
    from relaxide.script import relax as R
    from relaxide.script import tirx as T

    @I.ir_module
    class Module:
        @T.prim_func(s_tir=True)
        def addone(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
            for i in range(4):
                with T.sblock("B"):
                    vi = T.axis.remap("S", [i])
                    B[vi] = A[vi] + T.float32(1)

        @R.function
        def main(x: R.Tensor((4,), "float32")):
            cls = Module
            return relax.call_tir(cls.addone, (x,), R.Tensor((4,), dtype="float32"))

    vm = relax.VirtualMachine(tvm.compile(Module, "llvm"), tvm.cpu())
    assert vm["main"](tvm.runtime.tensor(np.ones(4, "float32"))).numpy().tolist() == [2, 2, 2, 2]


def test_a_library_of_kernels_alone_has_them_by_name(tmp_path):
    A = tvm.te.placeholder((4,), "float32")
    func = tvm.te.create_prim_func([A, tvm.te.compute((4,), lambda i: A[i] + 1)]).with_attr("global_symbol", "add")
    path = str(tmp_path / "kernels.so")
    tvm.compile(tvm.IRModule({"add": func}), "llvm").export_library(path)
    loaded, out = tvm.runtime.load_module(path), tvm.runtime.tensor(np.zeros(4, "float32"))
    loaded["add"](tvm.runtime.tensor(np.ones(4, "float32")), out)
    assert out.numpy().tolist() == [2, 2, 2, 2]
    with pytest.raises(AttributeError, match="has no function 'sub'"):
        loaded["sub"]
