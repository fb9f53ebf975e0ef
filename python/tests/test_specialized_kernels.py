"""Kernels of one text for several values (`T.jit`), and functions within kernels (`T.inline`)."""

from __future__ import annotations

import numpy as np
import pytest

import relaxide as rx
from relaxide.script import tirx as T

there = True


@T.jit
def scaled(
    A: T.Buffer((N,), "float32"),
    B: T.Buffer((N,), "float32"),
    *,
    N: T.constexpr,
    SCALE: T.constexpr = 3,
):
    for i in range(N):
        B[i] = A[i] * T.float32(SCALE)


def test_values_take_their_names_places():
    kernel = scaled.specialize(N=8)
    assert kernel is scaled.specialize(N=8, SCALE=3) and kernel is not scaled.specialize(N=8, SCALE=2)
    given, result = rx.runtime.tensor(np.arange(8, dtype="float32")), rx.runtime.tensor(np.zeros(8, "float32"))
    rx.compile(kernel, "llvm")["scaled"](given, result)
    assert np.array_equal(result.numpy(), np.arange(8) * 3.0)


@T.jit
def doubled(A: "T.Buffer((N,), 'float32')", B: "T.Buffer((N,), 'float32')", *, N: T.constexpr):
    for i in range(N):
        B[i] = A[i] * T.float32(2)


def test_annotations_may_stand_in_quotes():
    assert [int(buffer.shape[0]) for buffer in doubled.specialize(N=6).buffer_map.values()] == [6, 6]


@pytest.mark.parametrize("given, said", [({}, "missing N"), ({"N": 8, "M": 1}, "unexpected M"), ({"N": [8]}, "hash")])
def test_wrong_values_are_named(given, said):
    with pytest.raises(TypeError, match=said):
        scaled.specialize(**given)


@T.jit(private=True)
def shifted(A: T.Buffer((4,), "int32"), by: T.Optional(T.handle), bias: T.Optional(T.int32), B: T.Buffer((4,), "int32")):
    if by is None:
        for i in range(4):
            B[i] = A[i] + (bias if bias is not None else 7)
    elif there and bias is None:
        V = T.match_buffer(by, (4,), "int32")
        for i in range(4):
            B[i] = A[i] + V[i]
    else:
        for i in range(4):
            B[i] = 0


@pytest.mark.parametrize(
    "absent, count, expected", [(("by", "bias"), 2, 7), (("by",), 3, 5), (("bias",), 3, 2), ((), 4, -9)]
)
def test_parameters_that_are_left_out(absent, count, expected):
    kernel = shifted.specialize(**dict.fromkeys(absent))
    assert len(kernel.params) == count
    arrays = {"by": np.full(4, 2, "int32"), "bias": 5}
    given = [rx.runtime.tensor(np.full(4, 9, "int32"))]
    given += [rx.runtime.tensor(value) if name == "by" else value for name, value in arrays.items() if name not in absent]
    result = rx.runtime.tensor(np.ones(4, "int32"))
    rx.compile(kernel.with_attr("global_symbol", "f"), "llvm")["f"](*given, result)
    assert np.array_equal(result.numpy(), np.full(4, 9 + expected))


def test_what_is_left_out_is_used_nowhere():
    with pytest.raises(TypeError, match="only accept None"):
        shifted.specialize(bias=4)

    @T.jit
    def wrong(a: T.Optional(T.handle)):
        A = T.match_buffer(a, (1,), "int32")
        A[0] = 1

    with pytest.raises(rx.error.DiagnosticError, match="match_buffer"):
        wrong.specialize(a=None)
    with pytest.raises(rx.error.DiagnosticError, match="only supported by @T.jit"):

        @T.prim_func
        def plain(a: T.Optional(T.handle)):
            T.evaluate(0)


def test_functions_within_kernels():
    @T.prim_func(private=True)
    def within(A: T.Buffer((4, 4), "int32")):
        for i in range(4):

            @T.inline
            def put(j, *values, at=0, **named):
                A[i, j] = values[at] + named["more"] + late

            late = T.int32(5)
            put(0, 1, 2, more=i)
            put(1, *[3, 4], at=1, **{"more": i})

    @T.prim_func(private=True)
    def written_out(A: T.Buffer((4, 4), "int32")):
        for i in range(4):
            late = T.int32(5)
            A[i, 0] = 1 + i + late
            A[i, 1] = 4 + i + late

    rx.ir.assert_structural_equal(within, written_out)


def test_macros_are_handed_to_macros():
    @T.inline
    def apply(f, A):
        f(A)

    @T.inline
    def more(A):
        A[0] = A[0] + 1

    @T.prim_func(private=True)
    def calls(A: T.Buffer((1,), "int32")):
        apply(more, A)

    @T.prim_func(private=True)
    def written_out(A: T.Buffer((1,), "int32")):
        A[0] = A[0] + 1

    rx.ir.assert_structural_equal(calls, written_out)
    with pytest.raises(rx.error.DiagnosticError, match="@T.inline above it"):

        @T.prim_func
        def wrong():
            def inner():
                T.evaluate(0)
