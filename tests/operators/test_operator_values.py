"""Every operator gives what NumPy gives, over random shapes, dtypes and attributes, with fixed and with symbolic dimensions.

The cases are in ``value_cases``. All cases of an operator are functions of one module, which is compiled at once.
"""

import os

import numpy as np
import pytest
import value_cases as values

import relaxide as tvm
from relaxide import relax

SEEDS = int(os.environ.get("RELAXIDE_OPERATOR_CASES", 40 if os.environ.get("RELAXIDE_DEEP") else 2))


def parameter(case, array, i, symbolic):
    def dim(size):
        return f'"d{size}"' if symbolic and size != 1 and size not in case.fixed else str(size)

    dims = "".join(dim(size) + ", " for size in array.shape)
    return f'x{i}: R.Tensor(({dims}), dtype="{array.dtype}")'


def source(cases, symbolic):
    lines = ["# from tvm.script import ir as I\n# from tvm.script import tirx as T\n# from tvm.script import relax as R\n", "@I.ir_module\nclass Module:"]
    for number, case in cases:
        params = ", ".join(parameter(case, x, i, symbolic) for i, x in enumerate(case.inputs))
        call = case.call.format(*(f"x{i}" for i in range(len(case.inputs))))
        lines.append(f"    @R.function\n    def f{number}({params}):\n        y = {call}\n        return y\n")
    return "\n".join(lines)



def compare(got, case):
    expect = case.expect if isinstance(case.expect, list) else [case.expect]
    got = [g.numpy() for g in got] if not hasattr(got, "numpy") else [got.numpy()]
    assert len(got) == len(expect), f"{len(got)} results, not {len(expect)}"
    for g, e in zip(got, expect):
        e = np.asarray(e)
        assert g.dtype == e.dtype and g.shape == e.shape, f"{g.dtype}{g.shape}, not {e.dtype}{e.shape}"
        if e.dtype.kind == "f":
            np.testing.assert_allclose(g, e, rtol=case.tolerance, atol=case.tolerance)
        else:
            np.testing.assert_array_equal(g, e)


@pytest.mark.parametrize("name", values.CASES)
@pytest.mark.parametrize("symbolic", [False, True], ids=["fixed", "symbolic"])
def test_values_are_numpy_s(name, symbolic):
    with np.errstate(all="ignore"):
        cases = [(seed, values.CASES[name](values.Random([sum(name.encode()), seed]))) for seed in range(SEEDS)]
    cases = [(seed, case) for seed, case in cases if case.symbolic and case.inputs or not symbolic]
    if not cases:
        pytest.skip("dimensions are numbers in all cases")
    text = source(cases, symbolic)
    machine = relax.VirtualMachine(tvm.compile(tvm.script.from_source(text), target="llvm"), tvm.cpu())
    problems = []
    for seed, case in cases:
        try:
            compare(machine[f"f{seed}"](*(tvm.runtime.tensor(x) for x in case.inputs)), case)
        except Exception as error:  # noqa: BLE001 - all failing cases are reported
            shapes = ", ".join(f"{x.dtype}{x.shape}" for x in case.inputs)
            problems.append(f"{case.call} of {shapes}: {type(error).__name__} {str(error).strip()[:400]}")
    assert not problems, f"{len(problems)} of {len(cases)} fail:\n" + "\n".join(problems)


def test_every_operator_with_values_has_a_case():
    """Operators of the language, of memory and of devices are tested where programs are."""
    elsewhere = {
        "call_builtin_with_ctx", "call_dps_packed", "call_inplace_packed", "call_pure_packed", "call_py_func", "call_tir", "call_tir_inplace",
        "call_tir_with_grad", "invoke_closure", "invoke_pure_closure", "make_closure", "null_value", "print", "assert_op", "tensor_to_shape",
        "to_vdevice", "hint_on_device",
    }
    ir = pytest.importorskip("tvm.ir")
    names = {n.removeprefix("relax.") for n in ir.Op.list_op_names() if n.startswith("relax.")}
    names = {n for n in names if not n.startswith(("ccl.", "dist.", "vm.", "memory.", "builtin.", "inspect.", "vision.", "image."))}
    assert sorted(names - set(values.CASES) - elsewhere) == []
