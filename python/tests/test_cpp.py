"""Modules of C++ source."""

import shutil

import numpy as np
import pytest

import relaxide
from relaxide.ffi import cpp, libinfo

pytest.importorskip("tvm_ffi")
pytestmark = pytest.mark.skipif(not shutil.which("c++"), reason="compiles C++ with the system's compiler")

SOURCE = """
int add(int a, int b) { return a + b; }
void add_one(tvm::ffi::TensorView x, tvm::ffi::TensorView y) {
  for (int64_t i = 0; i < x.size(0); ++i) {
    static_cast<float*>(y.data_ptr())[i] = static_cast<float*>(x.data_ptr())[i] + 1;
  }
}
void fails() { TVM_FFI_THROW(ValueError) << "on purpose"; }
"""


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TVM_FFI_CACHE_DIR", str(tmp_path))


def test_source_becomes_a_module(tmp_path):
    names = {"add": "The sum.", "add_one": "", "fails": ""}
    module = cpp.load_inline("example", cpp_sources=SOURCE, functions=names)
    assert module.add(2, 3) == 5
    x, y = (relaxide.runtime.tensor(np.arange(4, dtype="float32")) for _ in range(2))
    module.add_one(x, y)
    assert y.numpy().tolist() == [1, 2, 3, 4]
    with pytest.raises(ValueError, match="on purpose"):
        module.fails()
    made = sorted(tmp_path.rglob("*.so"))
    first = made[0].stat().st_mtime_ns
    cpp.build_inline("example", cpp_sources=SOURCE, functions=names)
    assert sorted(tmp_path.rglob("*.so")) == made and made[0].stat().st_mtime_ns == first


def test_what_cannot_be_compiled_says_why():
    with pytest.raises(RuntimeError, match="the compiler refused wrong"):
        cpp.build_inline("wrong", cpp_sources="int f( {", functions="f")
    with pytest.raises(NotImplementedError, match="CUDA"):
        cpp.build_inline("cuda", cuda_sources="__global__ void f() {}")
    with pytest.raises(ValueError, match="no files"):
        cpp.build("nothing")
    assert cpp.to_cpp_dtype("float32") == "float" and len(libinfo.include_paths()) >= 1
