"""Errors of the compiler: each has a code, shows the user's line where there is one, and says what to try."""

import re
import subprocess
import sys

import pytest

import relaxide
from relaxide import relax
from relaxide.script import from_source, ir as I, relax as R


def message(call, kind=Exception):
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


def build(module):
    return relax.build(module, "llvm")


def test_a_target_that_does_not_exist_has_a_code():
    text = message(lambda: relax.build(relaxide.IRModule({}), "lvm"), ValueError)
    assert text.startswith("error[E0401]: unknown target kind `lvm` (did you mean llvm?)"), text


def test_a_pass_shows_the_line_that_it_refuses():
    @I.ir_module
    class Program:
        @R.function
        def main(
            p: R.Tensor(ndim=2, dtype="float32"),
            u: R.Tensor((2, 1), "float32"),
            r: R.Tensor((2, 1), "int64"),
        ):
            with R.dataflow():
                chosen = R.multinomial_from_uniform(p, u, r, dtype="int64")
                R.output(chosen)
            return chosen

    text = message(lambda: relax.backend.DispatchSampling()(Program), ValueError)
    assert text.startswith("error[E0303]: DispatchSampling: in function `main`: at `chosen`")
    assert __file__ in text
    assert "chosen = R.multinomial_from_uniform(p, u, r" in text


def test_an_operator_of_unknown_shapes_has_no_kernel():
    @I.ir_module
    class Program:
        @R.function
        def main(x: R.Tensor(ndim=2, dtype="float32")):
            twice = R.add(x, x)
            return twice

    text = message(lambda: build(Program))
    assert text.startswith("error[E0304]")
    assert "twice = R.add(x, x)" in text
    assert "help: R.match_cast" in text


@pytest.mark.parametrize(
    ("code", "body"),
    [
        ("E0205", "    with R.dataflow():\n        y = R.print(x, format='{}')\n        R.output(y)\n    return x"),
        ("E0208", "    y: R.Tensor((3, 2), 'float32') = R.add(x, x)\n    return y"),
        ("E0110", "    y = R.add(x, z)\n    return y"),
        ("E0122", "    y = R.matmul(x, x)\n    return y"),
        ("E0121", "    y, z = R.add(x, x)\n    return y"),
    ],
)
def test_texts_are_refused_with_a_code_and_the_line(code, body):
    text = message(lambda: from_source(f"@R.function\ndef main(x: R.Tensor((2, 3), 'float32')):\n{body}\n", "p.py"), SyntaxError)
    assert text.startswith(f"error[{code}]")
    assert re.search(r"--> p\.py:\d+:\d+\n", text)


def test_ill_formed_modules_are_read_where_that_is_asked_for():
    source = "@R.function\ndef main(x: R.Tensor((2,), 'float32')):\n    y = R.print(x, format='{}')\n    return x\n"
    module = from_source(source, check_well_formed=False)
    assert not relax.analysis.check_well_formed(module)

    @I.ir_module(check_well_formed=False)
    class Program:
        @R.function
        def main(x: R.Tensor((2,), "float32")):
            y = R.print(x, format="{}")
            return x

    assert not relax.analysis.check_well_formed(Program)
    text = message(lambda: relax.analysis.well_formed(Program), ValueError)
    assert "error[E0205]: in function `main`" in text
    assert "y = R.print(x" in text


def test_shapes_that_do_not_fit_are_both_named():
    x = relax.Var("x", relax.TensorType((2, 3), "float32"))
    y = relax.Var("y", relax.TensorType((4, 5), "float32"))
    text = message(lambda: relax.op.matmul(x, y))
    assert "matmul" in text
    assert 'R.Tensor((2, 3), dtype="float32")' in text
    assert 'R.Tensor((4, 5), dtype="float32")' in text


def test_what_is_nested_too_deep_is_refused():
    # In a process of its own: the failure that this is about ends the process.
    program = """
from relaxide import relax
x = relax.Var("x", relax.TensorType((4,), "float32"))
for wrap in (relax.op.exp, lambda e: relax.Tuple([e])):
    e = x
    try:
        for _ in range(100_000):
            e = wrap(e)
    except ValueError as error:
        assert "E0102" in str(error), error
    else:
        raise SystemExit("nothing was refused")
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_code_of_an_unknown_pass_is_explained():
    text = message(lambda: relaxide.ir.transform.Sequential([relax.transform.Gradient("nothing")])(relaxide.IRModule()), ValueError)
    assert text.startswith("error[E0302]: Gradient: the module has no Relax function")
