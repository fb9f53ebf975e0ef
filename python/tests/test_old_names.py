"""Names that documents and programs of older releases of TVM use: they mean what they meant, or say what replaced them."""

import importlib

import numpy as np
import pytest

import relaxide as tvm
from relaxide import _old_names, relax
from relaxide.script import relax as R  # noqa: F401 names of the text below
from relaxide.script import tirx as T  # noqa: F401

KERNEL = """
@T.prim_func(private=True)
def double(a: T.handle, b: T.handle):
    T.func_attr({"tir.noalias": T.bool(True)})
    n = T.int64()
    A = T.match_buffer(a, (n, T.int64(4)))
    B = T.match_buffer(b, (n, T.int64(4)))
    for i, j in T.grid(n, T.int64(4)):
        with T.block("double"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
"""

SAME = [(module, name) for module, names in _old_names.SAME.items() for name in names]
GONE = [(module, name) for module, names in _old_names.GONE.items() for name in names]


@pytest.mark.parametrize("module, name", SAME)
def test_old_names_are_something_and_no_new_ones(module, name):
    owner = importlib.import_module(module)
    assert getattr(owner, name) is not None
    assert name not in dir(owner) or name in ("tir", "nd"), "a submodule is listed once it is loaded, nothing else"


@pytest.mark.parametrize("module, name", GONE)
def test_names_that_are_gone_say_what_replaced_them(module, name):
    with pytest.raises(AttributeError, match="older releases of TVM; "):
        getattr(importlib.import_module(module), name)


def test_what_nobody_ever_had_is_an_ordinary_error():
    for module in (tvm, tvm.relax, tvm.runtime, tvm.error, tvm.tir):
        assert not hasattr(module, "no_such_name")


def test_a_program_in_old_words():
    """A kernel and a function as they were written with structural information, and run on `nd` arrays."""
    n = tvm.tir.Var("n", "int64")
    x = relax.Var("x", relax.TensorStructInfo((n, 4), "float32"))
    assert x.struct_info == x.ty and x.struct_info.ndim == 2
    builder = relax.BlockBuilder()
    kernel = builder.add_func(tvm.script.from_source(KERNEL), "double")
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(relax.call_tir(kernel, [x], out_sinfo=relax.TensorStructInfo((n, 4), "float32")))
            out = builder.emit_output(y)
        builder.emit_func_output(out)
    machine = relax.VirtualMachine(relax.build(builder.get(), "llvm"), tvm.cpu())
    array = tvm.nd.array(np.arange(8, dtype="float32").reshape(2, 4))
    assert isinstance(array, tvm.nd.NDArray)
    np.testing.assert_array_equal(machine["main"](array).numpy(), 2 * array.numpy())


def test_an_argument_by_both_names_is_refused():
    ty = relax.TensorType((4,), "float32")
    with pytest.raises(TypeError, match="out_sinfo"):
        relax.call_dps_packed("f", [], out_ty=ty, out_sinfo=ty)
    with pytest.raises(TypeError):
        relax.call_dps_packed("f", [])


def test_errors_of_the_library_are_caught_by_their_old_name():
    with pytest.raises(tvm.TVMError):
        raise tvm.error.InternalError("broken")


def test_a_scalar_type_with_a_value_says_what_is_written_now():
    text = '@R.function\ndef main(n: R.Prim(value="n")) -> R.Prim("int64"):\n    return n\n'
    with pytest.raises(tvm.error.ScriptError, match="a scalar parameter is a symbolic variable itself"):
        tvm.script.from_source(text)
