"""What the code generator knows of targets, and libraries that the machine's compiler makes."""

import shutil

import numpy as np
import pytest
import relaxide as tvm
from relaxide.script import tirx as T
from relaxide.target import Target, codegen


@T.prim_func(s_tir=True)
def add_one(x: T.int32, A: T.Buffer((4,), "float32")):
    assert x > 0, ("ValueError", ["x must be positive"])
    for i in range(4):
        A[i] = A[i] + T.float32(1)


def test_names_of_llvms_functions_have_numbers():
    number = codegen.llvm_lookup_intrinsic_id("llvm.sqrt")
    assert codegen.llvm_get_intrinsic_name(number) == "llvm.sqrt"
    assert codegen.llvm_lookup_intrinsic_id("sqrt") == 0
    assert str(T.call_llvm_pure_intrin("float32", number, T.float32(2))).count("llvm.sqrt") == 1
    with pytest.raises(ValueError, match="llvm_lookup_intrinsic_id"):
        codegen.llvm_get_intrinsic_name(10**6)


def test_processors_have_features():
    ivybridge = Target({"kind": "llvm", "mtriple": "x86_64-unknown-linux-gnu", "mcpu": "ivybridge"})
    assert codegen.llvm_cpu_has_features(["sse4.1", "ssse3"], ivybridge)
    assert not codegen.llvm_cpu_has_features("avx512bw", ivybridge)
    with ivybridge:
        assert "ivybridge" in codegen.llvm_get_cpu_archlist()
        assert codegen.llvm_get_vector_width() == 256
    assert "x86_64" in codegen.llvm_get_targets() and codegen.llvm_version_major() >= 19
    assert codegen.llvm_is_valid_cpu("cortex-a55", "aarch64-unknown-linux-gnu")
    assert not codegen.llvm_is_valid_cpu("no-such-one", "aarch64-unknown-linux-gnu")


def _adds(library):
    a = tvm.runtime.tensor(np.zeros(4, "float32"))
    library["add_one"](1, a)
    return a.numpy().tolist() == [1, 1, 1, 1]


def test_archives_hold_libraries(tmp_path):
    path = str(tmp_path / "kernels.tar")
    tvm.compile(add_one, "llvm").export_library(path)
    assert _adds(tvm.runtime.load_module(path))
    (tmp_path / "x").write_text("nothing")
    tvm.support.tar.tar(str(tmp_path / "empty.tar"), [str(tmp_path / "x")])
    with pytest.raises(ValueError, match="holds no library"):
        tvm.runtime.load_module(str(tmp_path / "empty.tar"))


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no compiler of C")
def test_programs_in_c_run_where_there_is_a_compiler(tmp_path):
    made = tvm.compile(add_one, "c")
    assert _adds(made)
    with pytest.raises(ValueError, match="x must be positive"):
        made(0, tvm.runtime.tensor(np.zeros(4, "float32")))
    seen = []

    def linked(output, files, **options):
        seen.extend(files)
        tvm.support.cc.create_shared(output, files, **options)

    made.export_library(str(tmp_path / "kernels.so"), fcompile=linked)
    assert [file.rpartition("/")[2] for file in seen] == ["lib0.c"]
    assert _adds(tvm.runtime.load_module(str(tmp_path / "kernels.so")))


def test_traced_values_are_handed_to_a_function():
    seen = []
    tvm.register_global_func("tests.traced", lambda *values: seen.append(values), override=True)
    x = tvm.te.placeholder((2,), "float32")
    y = tvm.te.compute((2,), lambda i: tvm.tirx.trace([i, x[i]], "tests.traced") + 1)
    out = tvm.runtime.tensor(np.zeros(2, "float32"))
    tvm.compile(tvm.te.create_prim_func([x, y]), "llvm")(tvm.runtime.tensor(np.array([5, 7], "float32")), out)
    assert out.numpy().tolist() == [6, 8] and sorted(seen) == [(0, 5.0), (1, 7.0)]


def test_devices_of_targets_that_say_theirs():
    target = tvm.target.Target({"kind": "llvm", "target_device_type": 2})
    assert tvm.runtime.device_from_target(target, 1) == tvm.runtime.cuda(1)
    assert tvm.runtime.device_from_target("composite") == tvm.runtime.cpu(0)
    options = ["-unroll-count:uint=3", "-unroll-threshold:uint=100"]
    assert tvm.target.Target({"kind": "llvm", "cl-opt": options}).attrs["cl-opt"] == options


def test_processors_that_nothing_is_compiled_for_answer_questions():
    riscv = {"kind": "llvm", "mtriple": "riscv64-linux-gnu"}
    widths = {"sifive-x280": 512, "spacemit-x60": 256, "generic-rv64": 128}
    for cpu, bits in widths.items():
        assert codegen.llvm_get_vector_width(Target({**riscv, "mcpu": cpu})) == bits
    wide = Target({**riscv, "mcpu": "generic-rv64", "mattr": ["+v", "+zvl256b", "-d"]})
    assert codegen.llvm_get_vector_width(wide) == 256
    assert codegen.target_has_features(["zvl128b", "zve64f", "f"], wide)
    # As LLVM does, what needs double precision goes with it.
    assert not any(codegen.target_has_features(name, wide) for name in ("d", "zve64d", "v"))
    arm = Target({"kind": "llvm", "mtriple": "arm-linux-gnueabihf", "mcpu": "cortex-a55"})
    assert codegen.llvm_cpu_has_features(["neon", "dotprod", "dsp"], arm)
    assert "cortex-m4" in codegen.llvm_get_cpu_archlist(arm)
    assert {"arm", "riscv64"} <= set(codegen.llvm_get_targets())
    with pytest.raises(ValueError, match="unknown processor `sifive-x2800`"):
        codegen.llvm_get_cpu_features(Target({**riscv, "mcpu": "sifive-x2800"}))


def test_features_come_with_others():
    aarch64 = Target({"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a55"})
    assert codegen.llvm_cpu_has_features(["neon", "dotprod"], aarch64)
    x86 = Target({"kind": "llvm", "mtriple": "x86_64-linux-gnu", "mcpu": "x86-64", "mattr": ["+sse4.1"]})
    assert codegen.llvm_cpu_has_features(["ssse3", "sse4.1"], x86)
    assert not codegen.llvm_cpu_has_features("sse4.2", x86)
    without = Target({"kind": "llvm", "mtriple": "x86_64-linux-gnu", "mcpu": "ivybridge", "mattr": ["-ssse3"]})
    assert not any(codegen.llvm_cpu_has_features(name, without) for name in ("ssse3", "sse4.2", "avx"))
    assert codegen.llvm_cpu_has_features(["sse3", "popcnt"], without) and codegen.llvm_get_vector_width(without) == 128
