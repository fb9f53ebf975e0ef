"""Derivatives of programs some of whose values are computed again instead of kept."""

import random

import numpy as np

import relaxide as tvm
from relaxide import relax
from relaxide.script import relax as R

OPS = (relax.op.sin, relax.op.exp, relax.op.tanh, relax.op.sigmoid)


def _program(steps, marks):
    """A chain of operators and its sum; ``marks`` says what stands in front of a step: ``"start"``, ``"end"``."""
    wrap = {"start": relax.op.grad.start_checkpoint, "end": relax.op.grad.end_checkpoint}
    builder = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((4,), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            value = x
            for at, op in enumerate([*steps, relax.op.sum]):
                value = builder.emit(wrap[marks[at]](value)) if at in marks else value
                value = builder.emit(op(value))
            at = len(steps) + 1
            out = builder.emit_output(wrap[marks[at]](value) if at in marks else value)
        builder.emit_func_output(out)
    return relax.transform.Gradient("main")(builder.get())


def _derivative(mod):
    vm = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    value, (gradient,) = vm["main_adjoint"](tvm.runtime.tensor(np.linspace(-1, 1, 4, dtype="float32")))
    return value.numpy(), gradient.numpy()


def test_derivatives_are_the_same_with_marks_anywhere():
    rng = random.Random(3)
    again = 0
    for _ in range(8):
        steps = [rng.choice(OPS) for _ in range(rng.randint(2, 5))]
        start = rng.randrange(len(steps))
        end = rng.choice([rng.randint(start + 1, len(steps) + 1), len(steps) + 1])
        marked = _program(steps, {start: "start", end: "end"})
        assert relax.analysis.check_well_formed(marked)
        again += "_cp" in marked["main_adjoint"].script()
        for got, kept in zip(_derivative(marked), _derivative(_program(steps, {}))):
            np.testing.assert_allclose(got, kept, rtol=1e-6)
    assert again > 2
