"""``SplitCallTIRByPattern``: what a code generator is given, what it may answer, and that the library function is called."""

import numpy as np
import pytest

import relaxide
from relaxide import relax
from relaxide.ir import assert_structural_equal
from relaxide.script import ir as I
from relaxide.script import relax as R
from relaxide.script import tirx as T


@T.prim_func(s_tir=True, private=True)
def scaled(a: T.handle, c: T.handle, m: T.int64, n: T.int64, alpha: T.float32, beta: T.float32):
    A = T.match_buffer(a, (m, n))
    C = T.match_buffer(c, (m, n))
    for i, j in T.grid(m, n):
        with T.sblock("scaled"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = alpha * A[vi, vj] + beta


@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def fused(A: T.Buffer((T.int64(4), T.int64(8)), "float32"), C: T.Buffer((T.int64(4), T.int64(8)), "float32")):
        B = T.sblock_alloc_buffer((T.int64(4), T.int64(8)))
        for i, j in T.grid(T.int64(4), T.int64(8)):
            with T.sblock("scale"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(3)
        for i, j in T.grid(T.int64(4), T.int64(8)):
            with T.sblock("exp"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.exp(B[vi, vj])

    @R.function
    def main(x: R.Tensor((4, 8), "float32")):
        cls = Module
        with R.dataflow():
            gv = R.call_tir(cls.fused, (x,), out_ty=R.Tensor((4, 8), "float32"))
            R.output(gv)
        return gv


def split(answer, patterns=(scaled,)):
    return relax.transform.SplitCallTIRByPattern(list(patterns), answer)(Module)


def test_a_generator_is_given_what_symbols_and_buffers_stand_for():
    seen = []

    def generate(matches):
        seen.extend(matches)
        return ["", 0, []]

    assert_structural_equal(split(generate), Module)
    (match,) = seen
    assert isinstance(match, relax.transform.MatchResult)
    assert [str(getattr(value, "value", value)) for value in match.symbol_values] == ["4", "8", "3.0", "0.0"]
    assert [buffer.name for buffer in match.matched_buffers] == ["A", "B"]
    assert_structural_equal(match.pattern, scaled)


def test_the_library_function_is_called_in_front_of_the_rest():
    name = "fused"
    mod = split(lambda matches: ["void {global_symbol}(float*, float*);", 1, [matches[0].matched_buffers[0]]])
    assert [var.name_hint for var in mod.get_global_vars()] == ["main", "unfused_epilogue"]
    call = mod["main"].body.blocks[0].bindings[0].value
    library = call.args[0]
    assert (library.global_symbol, library.attrs["c_source"]) == (name, f"void {name}(float*, float*);")
    assert library.attrs["c_source_fmt"] == "cu"
    assert library.without_attr("c_source").attrs.keys() == {"c_source_fmt"}

    def scale(given, out):
        np.copyto(np.from_dlpack(out), given.numpy() * 3)

    relaxide.ffi.register_global_func(name, scale, override=True)
    x = np.linspace(-1, 1, 32).astype("float32").reshape(4, 8)
    machine = relax.VirtualMachine(relaxide.compile(mod, target="llvm"), relaxide.cpu())
    got = machine["main"](relaxide.runtime.tensor(x)).numpy()
    np.testing.assert_allclose(got, np.exp(x * 3), rtol=1e-5)


def test_a_library_that_takes_a_whole_kernel_stands_in_its_place():
    exp = relaxide.script.from_source(
        Module.script(show_meta=True).replace("T.exp(B[vi, vj])", "B[vi, vj] + T.float32(2)")
    )
    made = relax.transform.SplitCallTIRByPattern([scaled], lambda m: ["", len(m), [m[0].matched_buffers[0]]])(exp)
    assert isinstance(made["fused"], relax.ExternFunc)
    assert 'fused = R.ExternFunc("fused")' in made.script()
    assert "call_tir" not in made["main"].script()
    assert relaxide.script.from_source(made.script()).script() == made.script()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (["", 2, []], "2 stages, and 1 match"),
        ([""], "1 values; it gives source, stages and arguments"),
        (["", "one", []], "a number of stages that is none"),
        ([1, 1, []], "a source that is no text"),
        (["", 1, ["A"]], "arguments that are no buffers"),
    ],
)
def test_wrong_answers_are_refused(answer, why):
    with pytest.raises((ValueError, TypeError), match=why):
        split(lambda matches: answer)


def test_a_library_takes_what_its_stages_read():
    with pytest.raises(ValueError, match="takes `B`, which is no parameter that its stages read"):
        split(lambda matches: ["", 1, [matches[0].matched_buffers[1]]])


def test_an_exception_of_a_generator_comes_through():
    with pytest.raises(ZeroDivisionError):
        split(lambda matches: 1 // 0)


def test_what_is_no_pattern_is_refused():
    with pytest.raises(ValueError, match="a pattern is one loop nest under a root block, and this has 2"):
        split(lambda matches: ["", 0, []], [Module["fused"]])
