"""Passes, contexts and instruments in Python."""

import inspect
import json

import numpy as np
import pytest

import relaxide as tvm
from relaxide import ir, relax
from relaxide.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((2, 3), "float32")):
        with R.dataflow():
            a = R.add(x, w)
            dead = R.exp(a)
            b = R.nn.relu(a)
            R.output(b)
        return b


def ops(mod):
    """The operators that `main` calls."""
    blocks = mod["main"].body.blocks
    return [binding.value.op.name for block in blocks for binding in block.bindings if isinstance(binding.value, relax.Call)]


def test_passes_are_functions_with_documentation():
    for name in relax.transform.names():
        function = getattr(relax.transform, name)
        assert inspect.signature(function) and function.__doc__, name
    assert ops(relax.transform.DeadCodeElimination()(Module)) == ["relax.add", "relax.nn.relu"]
    with pytest.raises(AttributeError, match="names\\(\\) lists"):
        relax.transform.Nothing


def test_values_are_bound_to_parameters_and_dimensions():
    value = np.ones((2, 3), "float32")
    bound = relax.transform.BindParams("main", {"w": value})(Module)
    assert [p.name_hint for p in bound["main"].params] == ["x"]
    assert [p.name_hint for p in Module["main"].bind_params({"w": value}).params] == ["x"]


def test_passes_are_written_in_python():
    @tvm.transform.module_pass(opt_level=1)
    def keep(mod, ctx):
        assert isinstance(ctx, tvm.transform.PassContext)
        return mod.with_attr("seen", 1)

    assert isinstance(keep, tvm.transform.ModulePass) and keep.info.opt_level == 1 and keep.info.name == "keep"
    assert keep(Module).attrs["seen"] == 1

    @relax.transform.function_pass(opt_level=0)
    def mark(func, mod, ctx):
        return func.with_attr("marked", True)

    assert mark(Module)["main"].attrs["marked"] is True

    @relax.transform.dataflowblock_pass(opt_level=0)
    class Drop:
        def __init__(self, name):
            self.name = name

        def transform_dataflowblock(self, block, mod, ctx):
            kept = [b for b in block.bindings if b.var.name_hint != self.name]
            return relax.DataflowBlock(kept)

    assert ops(Drop("dead")(Module)) == ["relax.add", "relax.nn.relu"] and Drop("b").name == "b"


def test_exceptions_of_passes_come_out_as_they_are():
    class Mine(Exception):
        pass

    @tvm.transform.module_pass(opt_level=0)
    def fails(mod, ctx):
        raise Mine("on purpose")

    with pytest.raises(Mine, match="on purpose"):
        tvm.transform.Sequential([relax.transform.DeadCodeElimination(), fails])(Module)
    with pytest.raises(Mine, match="on purpose"):
        tvm.compile(Module, relax_pipeline=fails)

    @tvm.transform.module_pass(opt_level=0)
    def forgets(mod, ctx):
        pass

    with pytest.raises(TypeError, match="returns a module"):
        forgets(Module)


def test_contexts_choose_what_sequences_run():
    calls = []

    def noting(name, level):
        return tvm.transform.module_pass(lambda mod, ctx: calls.append(name) or mod, opt_level=level, name=name)

    passes = tvm.transform.Sequential([noting("a", 0), noting("b", 3), noting("c", 1)])
    passes(Module)
    assert calls == ["a", "c"]
    calls.clear()
    with tvm.transform.PassContext(opt_level=3, disabled_pass=["a"]):
        passes(Module)
    assert calls == ["b", "c"]
    calls.clear()
    with tvm.transform.PassContext(opt_level=0, required_pass=["b"]) as context:
        assert tvm.transform.PassContext.current() is context
        passes(Module)
    assert calls == ["a", "b"] and tvm.transform.PassContext.current() is not context


def test_unknown_options_are_refused():
    with pytest.raises(ValueError, match="no.such.option"):
        tvm.transform.PassContext(config={"no.such.option": 1})
    assert all({"type", "doc"} == set(entry) for entry in tvm.transform.PassContext.list_configs().values())


@I.ir_module
class Exponentials:
    @R.function
    def main(x: R.Tensor((64, 48), "float32")):
        return R.exp(x)


def test_decisions_for_kernels_are_printed_and_replaced_by_a_file(tmp_path):
    built = relax.build(Exponentials, target="llvm")
    said = json.loads(built.schedule())
    piece = next(p for entry in said["schedule"] for p in entry["pieces"] if p["rule"] == "elementwise")
    parameter = next(p for p in piece["parameters"] if p["name"] == "lanes")
    assert parameter["value"] == parameter["guess"] and parameter["reason"]
    parameter["value"] = 2
    file = tmp_path / "kernels.json"
    file.write_text(json.dumps(said))
    with tvm.transform.PassContext(config={"relaxide.schedule": str(file)}):
        changed = json.loads(relax.build(Exponentials, target="llvm").schedule())
    pieces = [p for entry in changed["schedule"] for p in entry["pieces"]]
    lanes = [p for piece in pieces for p in piece["parameters"] if p["name"] == "lanes"]
    assert [p["value"] for p in lanes] == [2] and lanes[0]["guess"] == parameter["guess"]
    parameter["value"] = 1000
    file.write_text(json.dumps(said))
    with tvm.transform.PassContext(config={"relaxide.schedule": str(file)}):
        with pytest.raises(ValueError, match="lanes = 1000 is refused: the value is one of"):
            relax.build(Exponentials, target="llvm")


def test_instruments_see_every_pass(tmp_path, capsys):
    events = []

    @ir.instrument.pass_instrument
    class Watch:
        def enter_pass_ctx(self):
            events.append("enter")

        def exit_pass_ctx(self):
            events.append("exit")

        def should_run(self, mod, info):
            return info.name != "FoldConstant"

        def run_before_pass(self, mod, info):
            events.append(("before", info.name))

        def run_after_pass(self, mod, info):
            events.append(("after", info.name))

    timing = ir.instrument.PassTimingInstrument()
    instruments = [Watch(), timing, ir.instrument.DumpIR(tmp_path), ir.instrument.PassPrintingInstrument([], ["LegalizeOps"])]
    with tvm.transform.PassContext(instruments=instruments):
        mod = relax.transform.DeadCodeElimination()(Module)
        mod = relax.transform.FoldConstant()(mod)
        relax.transform.LegalizeOps()(mod)
        assert "DeadCodeElimination" in timing.render() and "total" in timing.render()
    names = ["DeadCodeElimination", "LegalizeOps"]
    assert events == ["enter", *[(when, name) for name in names for when in ("before", "after")], "exit"]
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["000_DeadCodeElimination.py", "001_LegalizeOps.py"]
    assert "After Running Pass: LegalizeOps" in capsys.readouterr().out


def test_an_instrument_that_fails_ends_the_pass():
    class Fails(ir.instrument.PassInstrument):
        def run_before_pass(self, mod, info):
            raise KeyError(info.name)

    with pytest.raises(KeyError, match="FoldConstant"):
        with tvm.transform.PassContext(instruments=[Fails()]):
            relax.transform.FoldConstant()(Module)


def test_pipelines_are_passes_and_compile_takes_passes():
    assert any("fused" in var.name_hint for var in relax.get_pipeline("zero")(relax.transform.DeadCodeElimination()(Module)).get_global_vars())
    with pytest.raises(ValueError, match="Unknown pipeline"):
        relax.get_pipeline("nothing")
    pipeline = tvm.transform.Sequential([relax.transform.DeadCodeElimination(), relax.get_pipeline("default_build")])
    seen = []

    class Count(ir.instrument.PassInstrument):
        def run_before_pass(self, mod, info):
            seen.append(info.name)

    with tvm.transform.PassContext(instruments=[Count()]):
        executable = tvm.compile(Module, relax_pipeline=pipeline)
    assert "DeadCodeElimination" in seen and "LegalizeOps" in seen
    machine = relax.VirtualMachine(executable, tvm.cpu())
    x = np.arange(6, dtype="float32").reshape(2, 3) - 3
    result = machine["main"](tvm.runtime.tensor(x), tvm.runtime.tensor(x))
    np.testing.assert_array_equal(result.numpy(), np.maximum(x + x, 0))


def test_the_target_around_is_compiled_for():
    baseline = tvm.target.Target("llvm -mcpu=x86-64-v2")
    assert tvm.target.Target.current() is None
    with baseline:
        assert tvm.target.Target.current() is baseline
        assert tvm.ir.transform.PassContext.current().target is baseline
        with tvm.target.Target("llvm"):
            assert tvm.target.Target.current() is not baseline
        assert tvm.target.Target.current() is baseline
    with pytest.raises(ValueError, match="no target is set"):
        tvm.target.Target.current(allow_none=False)


def test_kernels_are_replaced_in_other_layouts():
    source = """
@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def add(A: T.Buffer((T.int64(14),), "float32"), B: T.Buffer((T.int64(14),), "float32"), C: T.Buffer((T.int64(14),), "float32")):
        T.func_attr({"operator_name": "relax.add"})
        for i in range(T.int64(14)):
            with T.sblock("add"):
                v = T.axis.spatial(T.int64(14), i)
                C[v] = A[v] + B[v]

    @R.function
    def main(x: R.Tensor((14,), "float32"), y: R.Tensor((14,), "float32")) -> R.Tensor((14,), "float32"):
        cls = Module
        with R.dataflow():
            lv = R.call_tir(cls.add, (x, y), out_ty=R.Tensor((14,), "float32"))
            gv = R.call_tir(cls.add, (lv, y), out_ty=R.Tensor((14,), "float32"))
            R.output(gv)
        return gv
"""
    packed = tvm.script.from_source("""
@T.prim_func(private=True, s_tir=True)
def packed(A: T.Buffer((T.int64(4), T.int64(4)), "float32"), B: T.Buffer((T.int64(4), T.int64(4)), "float32"), C: T.Buffer((T.int64(4), T.int64(4)), "float32")):
    for i, j in T.grid(T.int64(4), T.int64(4)):
        with T.sblock("add"):
            v, w = T.axis.remap("SS", [i, j])
            C[v, w] = A[v, w] + B[v, w]
""")
    mod = tvm.script.from_source(source)
    blocks = tvm.tirx.IndexMap.from_func(lambda i: (i // 4, i % 4))
    altered = relax.transform.AlterOpImpl({"relax.add": packed}, {"relax.add": [blocks, lambda i: (i // 4, i % 4), blocks]})(mod)
    tidy = tvm.transform.Sequential([relax.transform.OptimizeLayoutTransform(), relax.transform.DeadCodeElimination()])(altered)
    assert tidy.script().count("R.layout_transform(") == 3 and tidy.script().count("cls.remove_pad") == 1
    x, y = (np.random.default_rng(seed).random(14, "float32") for seed in (1, 2))
    for one in (altered, tidy):
        machine = relax.VirtualMachine(tvm.compile(one, target="llvm"), tvm.cpu())
        found = machine["main"](tvm.runtime.tensor(x), tvm.runtime.tensor(y)).numpy()
        np.testing.assert_allclose(found, x + y + y, rtol=1e-6)
    with pytest.raises(ValueError, match="no map of indices"):
        relax.transform.AlterOpImpl({"relax.add": packed}, {"relax.add": [3, 3, 3]})(mod)


def test_costly_functions_are_approximated():
    functions = {"exp": np.exp, "tanh": np.tanh, "erf": None, "nn.softmax": None}
    values = np.concatenate([np.linspace(-20, 20, 4001), [-100, -9.1, 0.0, 88.0]]).astype("float32")
    for name in functions:
        mod = tvm.script.from_source(
            f"@I.ir_module\nclass Module:\n    @R.function\n    def main(x: R.Tensor((4005,), \"float32\")):\n        with R.dataflow():\n"
            f"            y = R.{name}(x)\n            R.output(y)\n        return y\n"
        )
        fast = relax.transform.FastMathTransform()(mod)
        assert f"fast_{name.split('.')[-1]}" in fast.script()
        found, exact = (
            relax.VirtualMachine(tvm.compile(one, target="llvm"), tvm.cpu())["main"](tvm.runtime.tensor(values)).numpy()
            for one in (fast, mod)
        )
        np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-6 if name != "exp" else 1e-37)
