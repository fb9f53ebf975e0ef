"""The forms that steps of schedules leave: values of axes, extents and types of loops, and what errors tell."""

import pytest

import relaxide as tvm
from relaxide.s_tir import Schedule, ScheduleError
from relaxide.script import tirx as T


@T.prim_func(s_tir=True)
def rows(A: T.Buffer((1, 64), "float32"), B: T.Buffer((1,), "float32")):
    for i, j in T.grid(1, 64):
        with T.sblock("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vj]


def loops(sch):
    return [line.strip() for line in sch.mod["main"].script().splitlines() if line.strip().startswith("for ")]


def values(sch):
    return [line.strip() for line in sch.mod["main"].script().splitlines() if "T.axis" in line]


@pytest.mark.parametrize("extents, value", [((1, 64), "0"), ((1, 1), "0"), ((4, 16), "i_j_fused // 16")])
def test_the_digit_of_a_loop_of_one_iteration_is_zero(extents, value):
    text = f"""
from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def main(A: T.Buffer({extents}, "float32")):
    for i, j in T.grid{extents}:
        with T.sblock("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = T.float32(1)
"""
    sch = Schedule(tvm.script.from_source(text))
    sch.fuse(*sch.get_loops("b"))
    assert values(sch)[0] == f"vi = T.axis.spatial({extents[0]}, {value})"


@pytest.mark.parametrize(
    "extent, outer",
    [("n * 32", "n"), ("(n + 31) // 32 * 32", "(n + 31) // 32"), ("n", "(n + 31) // 32"), ("n + 7", "(n + 38) // 32"), ("n * 32 + 1", "n + 1")],
)
def test_the_open_factor_of_a_split_is_in_its_shortest_form(extent, outer):
    text = f"""
from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def main(A: T.Buffer((16384,), "float32"), n: T.int32):
    for i in range({extent}):
        with T.sblock("b"):
            vi = T.axis.spatial({extent}, i)
            A[vi] = T.float32(1)
"""
    sch = Schedule(tvm.script.from_source(text))
    sch.split(sch.get_loops("b")[0], [None, 32])
    assert loops(sch) == [f"for i_0, i_1 in T.grid({outer}, 32):"]


def test_a_unit_loop_counts_in_32_bits():
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((4,), "float32")):
        for i in range(T.int64(4)):
            with T.sblock("b"):
                vi = T.axis.spatial(T.int64(4), i)
                A[vi] = T.float32(1)

    sch = Schedule(main)
    sch.add_unit_loop(sch.get_sblock("b"))
    assert loops(sch) == ["for i, u in T.grid(T.int64(4), 1):"]


def test_a_constant_axis_has_the_type_of_the_constant():
    for dtype, extent in [("int32", "1"), ("int64", "T.int64(1)")]:
        sch = Schedule(rows)
        zero = tvm.tirx.const(0, dtype)
        sch.transform_block_layout("sum", lambda i, j: (zero, j))  # noqa: B023
        assert loops(sch) == [f"for ax0, ax1 in T.grid({extent}, 64):"]


def test_an_axis_of_one_value_is_the_index_of_the_reader():
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((1, 8), "float32"), C: T.Buffer((1, 8), "float32")):
        B = T.sblock_alloc_buffer((1, 8))
        for i, j in T.grid(1, 8):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[0, vj] = A[vi, vj] * 2.0
        for i, j in T.grid(1, 8):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] + 1.0

    sch = Schedule(main)
    sch.compute_inline("B")
    assert "C[vi, vj] = A[vi, vj] * T.float32(2.0) + T.float32(1.0)" in sch.mod["main"].script()


def test_simple_forms_keep_the_order_of_what_was_written():
    i, j, n = (tvm.tirx.Var(name, "int32") for name in "ijn")
    analyzer = tvm.sym.Analyzer()
    for e in (n + i, j + i * n, (i + j) * n):
        assert str(analyzer.simplify(e)) == str(e)
    assert str(analyzer.simplify(i * 4 + j - i * 4)) == "j"
    assert str(analyzer.simplify(j + (i - 16))) == str(analyzer.canonical_simplify(j + (i - 16)))


@pytest.mark.parametrize(
    "level, told, untold", [("detail", ["`wrong`", "help:"], []), ("fast", ["`wrong`"], ["help:"]), ("none", ["not rendered"], ["`wrong`"])]
)
def test_errors_tell_as_much_as_they_are_asked_to(level, told, untold):
    sch = Schedule(rows, error_render_level=level).copy()
    with pytest.raises(ScheduleError) as error:
        sch.get_sblock("wrong")
    assert all(part in str(error.value) for part in told)
    assert not any(part in str(error.value) for part in untold)


def test_an_unknown_level_of_errors_is_refused():
    with pytest.raises(ValueError, match="detail, fast, none"):
        Schedule(rows, error_render_level="much")
