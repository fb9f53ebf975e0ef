"""Classes that users register for tensors, functions and modules are what such values come as."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import relaxide as tvm
from relaxide import ffi


def run(code):
    """Run code in an interpreter of its own: registration is for the whole process."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_registered_classes_are_what_values_come_as():
    run(
        """
        import relaxide.ffi as ffi, relaxide as tvm

        @ffi.register_object("ffi.Tensor")
        class MyTensor(ffi.Tensor):
            def first(self):
                return self.numpy()[0]

        @ffi.register_object("ffi.Function")
        class MyFunction(ffi.Function):
            def twice(self, x):
                return self(self(x))

        @ffi.register_object("ffi.Module")
        class MyModule(ffi.Module):
            pass

        same = ffi.convert_func(lambda x: x)
        tensor = same(tvm.runtime.tensor([3.0, 4.0]))
        assert type(tensor) is MyTensor and tensor.first() == 3.0
        double = ffi.convert_func(lambda x: 2 * x)
        assert type(double) is MyFunction and double.twice(3) == 12
        assert type(ffi.system_lib()) is MyModule
        """
    )


def test_a_class_of_something_else_is_refused():
    with pytest.raises(TypeError, match="does not derive"):

        @ffi.register_object("ffi.Tensor")
        class Wrong(ffi.Object):
            pass


def test_a_missing_key_is_named_as_in_tvm():
    with pytest.raises(KeyError, match="key is not in Map"):
        ffi.Map({"a": 1})["b"]


def test_short_bytes_hash_as_in_tvm():
    reference = pytest.importorskip("tvm_ffi")
    for value in (b"", b"x", b"ab", b"1234567", b"12345678", "x", ["x", b"y"]):
        assert ffi.structural_hash(value) == reference.structural_hash(value), value


def test_parameters_are_saved_in_the_form_of_tvm(tmp_path):
    reference = pytest.importorskip("tvm")
    arrays = {"w": np.arange(6, dtype="float32").reshape(2, 3), "b": np.array(3, "int8"), "e": np.zeros((0, 2), "int64")}
    ours = tvm.runtime.save_param_dict({name: tvm.runtime.tensor(array) for name, array in arrays.items()})
    theirs = reference.runtime.save_param_dict({n: reference.runtime.tensor(a) for n, a in arrays.items()})
    assert ours == bytes(theirs)
    tvm.runtime.save_param_dict_to_file({"w": tvm.runtime.tensor(arrays["w"])}, tmp_path / "w")
    loaded = tvm.runtime.load_param_dict_from_file(tmp_path / "w")
    np.testing.assert_array_equal(loaded["w"].numpy(), arrays["w"])
    for damaged in (b"", b"abc", ours[:50]):
        with pytest.raises(ValueError, match="cannot read the parameters"):
            tvm.runtime.load_param_dict(damaged)


def test_enabled_says_what_this_build_runs():
    assert tvm.runtime.enabled("llvm") and tvm.runtime.enabled({"kind": "cpu"})
    assert not tvm.runtime.enabled("cuda")
    with pytest.raises(RuntimeError, match="Unknown optional runtime"):
        tvm.runtime.enabled("abacus")
