"""Modules with methods in Python."""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax
from relaxide.script import ir as I, relax as R, tirx as T


@I.ir_module
class Model(relax.BasePyModule):
    @I.pyfunc
    def pipeline(self, x):
        """Scales, then normalizes."""
        scaled = self.call_tir("scale", [x], relax.TensorType((8,), "float32"))
        return self.normalized(scaled)

    @I.pyfunc
    def normalized(self, x):
        return np.asarray(x) / np.asarray(x).sum()

    @T.prim_func
    def scale(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = A[i] * T.float32(2)

    @R.function
    def program(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        y = R.add(x, x)
        z = R.call_py_func("normalized", (y,), out_ty=R.Tensor((8,), "float32"))
        return R.multiply(z, z)


X = np.arange(1, 9, dtype="float32")


@pytest.fixture(scope="module")
def model():
    return Model(tvm.cpu())


def test_methods_call_kernels_and_each_other(model):
    np.testing.assert_allclose(model.pipeline(X), X / X.sum(), rtol=1e-6)
    np.testing.assert_allclose(model.call_py_func("normalized", [X]), X / X.sum(), rtol=1e-6)
    assert model.pipeline.__doc__ == "Scales, then normalizes."


def test_programs_call_methods(model):
    made = model.program(X)
    assert isinstance(made, np.ndarray)
    np.testing.assert_allclose(made, (X / X.sum()) ** 2, rtol=1e-5)


def test_tensors_come_back_as_tensors(model):
    made = model.program(tvm.runtime.tensor(X))
    assert isinstance(made, tvm.runtime.Tensor)


def test_functions_are_listed_by_kind(model):
    assert model.list_functions() == {"tirx": ["scale"], "relax": ["program"], "extern": []}
    assert model.get_function("scale") is not None and model.get_function("nothing") is None
    assert sorted(model.pyfuncs) == ["normalized", "pipeline"] and "normalized" in model.script()
    assert Model.__name__ == "Model" and "program" in Model.script()


def test_registered_functions_write_outputs(model):
    @tvm.register_global_func("test.py_module.negate", override=True)
    def negate(x, out):
        out.copyfrom(-x.numpy())

    n = tvm.tirx.Var("n", "int64")
    made = model.call_dps_packed("test.py_module.negate", [X], relax.TensorType((n,), "float32"))
    np.testing.assert_array_equal(made, -X)


def test_what_is_not_there_is_named(model):
    with pytest.raises(ValueError, match="no_kernel"):
        model.call_tir("no_kernel", [X], (8,))
    with pytest.raises(ValueError, match="no.such.function"):
        model.call_dps_packed("no.such.function", [X], (8,))
    with pytest.raises(ValueError, match="no_method"):
        model.call_py_func("no_method", [X])
    with pytest.raises(ValueError, match="out_ty"):
        model.call_tir("scale", [], relax.TensorType((tvm.tirx.Var("n", "int64"),), "float32"))


def test_two_modules_have_functions_of_one_name():
    one, two = Model(tvm.cpu()), Model(tvm.cpu())
    two.add_python_function("normalized", lambda x: np.ones(8, "float32"))
    np.testing.assert_array_equal(two.program(X), np.ones(8))
    np.testing.assert_allclose(one.program(X), (X / X.sum()) ** 2, rtol=1e-5)
