"""Passes that ask functions of Python, and pipelines by the names of devices."""

import numpy as np
import pytest

import relaxide
from relaxide import relax
from relaxide.script import ir as I
from relaxide.script import relax as R
from relaxide.script import tirx as T


@I.ir_module
class Sum:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
        with R.dataflow():
            s = R.add(x, y)
            r = R.nn.relu(s)
            R.output(r)
        return r


@I.ir_module
class Products:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), a: R.Tensor((3, 4), "float32"), b: R.Tensor((3, 4), "float32")):
        with R.dataflow():
            p = R.matmul(x, a)
            q = R.matmul(x, b)
            s = R.add(p, q)
            R.output(s)
        return s


def test_an_operator_is_lowered_as_the_program_says():
    seen = []

    def lower(bb, call):
        seen.append(call.op.name)
        return bb.emit(relax.op.subtract(call.args[0], relax.op.negative(call.args[1])))

    mod = relax.transform.LegalizeOps({"relax.add": lower})(Sum)
    assert seen == ["relax.add"]
    text = mod.script()
    assert "cls.subtract" in text and "cls.tir_negative" in text and "cls.add" not in text
    x, y = (np.arange(6, dtype="float32").reshape(2, 3) - shift for shift in (4, 1))
    vm = relax.VirtualMachine(relax.build(mod), relaxide.cpu())
    assert np.array_equal(vm["main"](x, y).numpy(), np.maximum(x + y, 0))


def test_what_is_noted_of_an_operator_lowers_it():
    from relaxide.relax.transform.legalize_ops.common import register_legalize

    @register_legalize("relax.add")
    def lower(bb, call):
        return bb.emit(relax.op.maximum(*call.args))

    try:
        assert "cls.maximum" in relax.transform.LegalizeOps()(Sum).script()
        by_map = relax.transform.LegalizeOps({"relax.add": lambda bb, call: bb.emit(relax.op.multiply(*call.args))})(Sum)
        assert "cls.multiply" in by_map.script()
    finally:
        relaxide.ir.Op.get("relax.add").reset_attr("FLegalize")
    assert "cls.add" in relax.transform.LegalizeOps()(Sum).script()


def test_an_exception_of_a_lowering_is_the_programs():
    def lower(bb, call):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        relax.transform.LegalizeOps({"relax.add": lower})(Sum)


def test_operators_that_are_skipped_stay():
    assert "R.add" in relax.transform.LegalizeOps(skip_ops=["relax.add"])(Sum).script()


def test_products_are_combined_where_the_program_says_so():
    asked = []

    def check(x, right, bias, bindings):
        asked.append((x.name_hint, [w.name_hint for w in right], list(bias), len(bindings)))
        return len(asked) > 1

    assert "R.concat" not in relax.transform.CombineParallelMatmul(check)(Products).script()
    assert "R.concat" in relax.transform.CombineParallelMatmul(check)(Products).script()
    assert asked[0] == ("x", ["a", "b"], [], 3)
    assert "R.concat" in relax.transform.CombineParallelMatmul()(Products).script()


def test_parameters_get_the_types_that_the_program_says():
    wide = relax.TensorType((5, 3), "float32")
    mod = relax.transform.UpdateParamType(lambda var: wide)(Sum)
    assert "R.Tensor((5, 3)" in mod.script() and "(2, 3)" not in mod.script()
    with pytest.raises(ZeroDivisionError):
        relax.transform.UpdateParamType(lambda var: 1 // 0)(Sum)


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64-v3", {"kind": "llvm"}])
def test_the_pipeline_of_processors_builds(target):
    mod = relax.get_default_pipeline(target)(Sum)
    stages = [
        *relax.pipeline.library_dispatch_passes(target),
        *relax.pipeline.legalize_passes(target),
        *relax.pipeline.dataflow_lower_passes(target),
        *relax.pipeline.finalize_passes(target),
    ]
    assert relaxide.ir.transform.Sequential(stages)(Sum).script() == mod.script()
    assert relax.backend.cpu_generic.get_default_pipeline(target)(Sum).script() == mod.script()


def test_pipelines_of_devices_are_known():
    for target, name in [("cuda", "cuda"), ("rocm", "rocm"), ("metal", "gpu_generic"), ("vulkan", "gpu_generic")]:
        assert relax.get_default_pipeline(target).info.name == name
    with pytest.raises(ValueError, match="there is no pipeline for devices of hexagon"):
        relax.get_default_pipeline("hexagon")
    with pytest.raises(NotImplementedError, match="cpu_weight_prepack"):
        relax.get_pipeline("static_shape_tuning", total_trials=1, target="llvm", cpu_weight_prepack=True)
    assert relax.backend.DispatchSortScan()(Sum).script() == Sum.script()


def test_a_pipeline_without_trials_takes_what_was_tuned(tmp_path):
    options = {"target": "llvm", "work_dir": str(tmp_path), "total_trials": 0, "max_trials_per_task": 2}
    made = relax.get_pipeline("static_shape_tuning", **options)(Sum)
    assert relaxide.ir.structural_equal(made, relax.get_pipeline("zero")(Sum))


class _Loaded(relax.frontend.nn.ExternModule):
    def __init__(self, loaded):
        super().__init__({})
        self._loaded = loaded

    def load(self):
        return self._loaded


@T.prim_func(s_tir=True)
def doubled(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.sblock("y"):
            v = T.axis.spatial(4, i)
            y[v] = x[v] * T.float32(2)


def test_modules_of_external_functions_are_attached(tmp_path):
    library = str(tmp_path / "doubled.so")
    relaxide.compile(relaxide.IRModule({"doubled": doubled}), "llvm").export_library(library)
    loaded = _Loaded(relaxide.runtime.load_module(library))
    once = relax.transform.AttachExternModules([loaded])(Sum)
    twice = relax.transform.AttachExternModules([loaded])(once)
    assert [len(mod.attrs["external_mods"]) for mod in (relax.transform.AttachExternModules([])(Sum), once, twice)] == [0, 1, 2]
    with pytest.raises(TypeError, match="external modules of `relax.frontend.nn`, not str"):
        relax.transform.AttachExternModules(["x.o"])(Sum)
