"""`relaxide.testing` and `relaxide.support`: what tests and scripts import."""

import os
import platform
import subprocess
import sys
import tarfile

import numpy as np
import pytest

import relaxide as tvm
import relaxide.testing
from relaxide.relax.testing.matmul import get_relax_matmul_module
from relaxide.s_tir import Schedule
from relaxide.s_tir.schedule.testing import assert_structural_equal_ignore_global_symbol, verify_trace_roundtrip
from relaxide.script import tirx as T
from relaxide.support import cc, tar, utils
from relaxide.testing import env

pytest_plugins = ["relaxide.testing.plugin"]

first, second = relaxide.testing.parameters((1, "one"), (2, "two"))
single = relaxide.testing.parameter(3, 4)
SEEN = []


def test_arrays_are_compared_by_shape_and_value():
    relaxide.testing.assert_allclose(tvm.runtime.tensor(np.ones(3, "float32")), np.ones(3))
    with pytest.raises(AssertionError):
        relaxide.testing.assert_allclose(np.ones(3), np.ones(4))
    with pytest.raises(AssertionError):
        relaxide.testing.assert_allclose(np.ones(3), np.full(3, 1.1))


def test_gradients_are_compared_with_differences():
    x = np.array([0.5, -1.0, 2.0])
    relaxide.testing.check_numerical_grads(lambda a: float((a**2).sum()), [x], [2 * x])
    relaxide.testing.check_numerical_grads(lambda a: float(np.abs(a).sum()), {"a": x}, {"a": np.sign(x)})
    with pytest.raises(AssertionError, match="gradient"):
        relaxide.testing.check_numerical_grads(lambda a: float((a**2).sum()), [x], [3 * x])


def test_values_of_one_case_go_together(first, second):
    assert (first, second) in [(1, "one"), (2, "two")]


def test_a_parameter_has_each_of_its_values(single):
    SEEN.append(single)
    assert single in (3, 4)


@relaxide.testing.parametrize_targets("llvm")
def test_targets_are_given_with_their_devices(target, dev):
    assert target == "llvm"
    assert dev == tvm.cpu()


def test_enabled_targets_follow_the_environment():
    assert relaxide.testing.enabled_targets() == [("llvm", tvm.cpu())]
    program = "import relaxide.testing as t; print(t.enabled_targets(), t.env.has_llvm(), t.env.has_cuda())"
    environment = {**os.environ, "TVM_TEST_TARGETS": "cuda"}
    result = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout == "[] False False\n"


def test_random_arrays_are_finite():
    for dtype in ("float32", "float16", "bfloat16", "int8", "bool"):
        if dtype == "bfloat16" and dtype not in relaxide.testing.ml_dtypes_dict:
            continue
        array = relaxide.testing.generate_random_array(dtype, (50,))
        assert array.shape == (50,)
        assert np.isfinite(array.astype("float64")).all()


def test_traces_go_round():
    @T.prim_func(private=True, s_tir=True)
    def double(a: T.Buffer((8,), "float32"), b: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.sblock("double"):
                at = T.axis.spatial(8, i)
                b[at] = a[at] * T.float32(2)

    schedule = Schedule(double)
    (loop,) = schedule.get_loops(schedule.get_sblock("double"))
    schedule.split(loop, [2, 4])
    verify_trace_roundtrip(schedule, double)
    assert_structural_equal_ignore_global_symbol(double.with_attr("global_symbol", "x"), double.with_attr("global_symbol", "y"))


def test_products_to_try_passes_on():
    module = get_relax_matmul_module((2, 3), (3, 4), "float32", transposed_y=True, bias_shape=(4,))
    machine = tvm.relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    x, y, bias = (np.random.default_rng(0).standard_normal(s).astype("float32") for s in ((2, 3), (4, 3), (4,)))
    got = machine["main"](*map(tvm.runtime.tensor, (x, y, bias))).numpy()
    np.testing.assert_allclose(got, x @ y.T + bias, rtol=1e-5, atol=1e-5)


def test_a_kernel_is_timed_from_its_file():
    @T.prim_func(s_tir=True)
    def main(a: T.Buffer((8,), "float32"), b: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.sblock("double"):
                at = T.axis.spatial(8, i)
                b[at] = a[at] * T.float32(2)

    library = tvm.compile(main, target="llvm")
    a, b = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    profile, (_, doubled) = relaxide.testing.local_run(library, "cpu", [a, b])
    np.testing.assert_array_equal(doubled, 2 * a)
    assert profile.mean > 0


def test_folders_and_archives(tmp_path):
    folder = utils.tempdir()
    path = folder.relpath("x.txt")
    with open(path, "w", encoding="ascii") as file:
        file.write("text")
    tar.tar(str(tmp_path / "a.tar"), [path])
    assert tarfile.open(tmp_path / "a.tar").getnames() == ["x.txt"]
    again = utils.tempdir()
    assert tar.normalize_file_list_by_unpacking_tars(again, [str(tmp_path / "a.tar")])[0].endswith("x.txt")
    where = folder.temp_dir
    folder.remove()
    assert not os.path.exists(where)


@pytest.mark.skipif(cc.get_cc() is None, reason="there is no compiler of C")
def test_a_compiler_links_what_it_is_given(tmp_path):
    source = tmp_path / "one.c"
    source.write_text("int one(void) { return 1; }\n")
    cc.create_shared(str(tmp_path / "one.so"), [str(source)])
    symbols = cc.get_global_symbol_section_map(str(tmp_path / "one.so"))
    assert any("one" in name for name, section in symbols.items() if section == "T")
    source.write_text("no C\n")
    with pytest.raises(RuntimeError, match="command line"):
        cc.create_shared(str(tmp_path / "two.so"), [str(source)])


def test_features_of_the_processor_are_known_by_linuxs_names_too():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as text:
        lines = [line.partition(":") for line in text]
    flags = {flag for name, _, value in lines if name.strip() in ("flags", "Features") for flag in value.split()}
    asked = ["avx2", "fma", "avx512f", "avx512_vnni", "sse4_1"] if platform.machine() == "x86_64" else ["sve", "bf16", "i8mm"]
    assert [env.has_cpu_feature(name) for name in asked] == [name in flags for name in asked]
    assert env.has_cpu_feature(asked) == (flags >= set(asked)) and not env.has_cpu_feature("no_such_feature")
