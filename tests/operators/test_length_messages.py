"""What a user reads where an operator's lengths do not fit when a program runs: the operator, the dimensions, and both numbers."""

import re

import numpy as np
import pytest

import relaxide
from relaxide.runtime import tensor

F = "float32"

#: Arguments with their dimensions, the call, what is fed, the message.
CASES = [
    ([("n", "k"), ("j", "m")], "R.matmul(a, b)", [(2, 3), (4, 5)],
     r"matmul: dimension 0 of `x2` is 4, which must be the same as dimension 1 of `x1`, 3"),
    ([("n", "k"), ("j", "m")], "R.concat([a, b], axis=0)", [(2, 3), (2, 5)], r"concat: .* is 5, which must be the same as .*, 3"),
    ([("n", "k"), ("j",), ("l",)], "R.nn.layer_norm(a, b, c, axes=[1])", [(2, 3), (3,), (7,)],
     r"layer_norm: dimension 0 of `beta` is 7, which must be the same as dimension 1 of `data`, 3"),
    ([("n", "k"), ("j", "m")], 'R.einsum([a, b], "ij,jk->ik")', [(2, 3), (6, 5)], r"einsum: .*(6|3), which must be the same as .*, (3|6)"),
    ([(1, "c", 4, 4), ("o", "i", 3, 3)], "R.nn.conv2d(a, b)", [(1, 2, 4, 4), (4, 3, 3, 3)],
     r"conv2d: the number of the image's channels is 2, which must be the same as that of the channels that the weight is for, 3"),
    ([(1, "c", 4, 4), ("o", "i", 3, 3)], "R.nn.conv2d(a, b, groups=2)", [(1, 6, 4, 4), (3, 3, 3, 3)],
     r"conv2d: the first length of a weight for 2 groups is 3, which must be the same as what is divided into so many equal ones, 2"),
    ([(1, "c", 4, 4), ("o", "i", 3, 3)], "R.nn.conv2d(a, b, groups=2)", [(1, 6, 4, 4), (1, 3, 3, 3)],
     r"conv2d: the first length of a weight for 2 groups is 1, which must be the same as what is divided into so many equal ones, 2"),
]


def machine_of(dims, call, exec_mode):
    names = "abc"[: len(dims)]
    texts = ["(" + ", ".join(f'"{d}"' if isinstance(d, str) else str(d) for d in shape) + ",)" for shape in dims]
    params = ", ".join(f'{name}: R.Tensor({text}, "{F}")' for name, text in zip(names, texts))
    text = f"@R.function\ndef main({params}):\n    r = {call}\n    return r\n"
    return relaxide.relax.VirtualMachine(relaxide.compile(relaxide.script.from_source(text), target="llvm", exec_mode=exec_mode), relaxide.cpu())


@pytest.mark.parametrize("exec_mode", ["bytecode", "compiled"])
@pytest.mark.parametrize("dims, call, fed, message", CASES, ids=[f"{case[1]}-{case[2]}" for case in CASES])
def test_the_message_has_the_operator_and_both_numbers(dims, call, fed, message, exec_mode):
    machine = machine_of(dims, call, exec_mode)
    with pytest.raises(ValueError, match=message):
        machine["main"](*[tensor(np.ones(shape, F)) for shape in fed])


def test_texts_of_programs_have_the_lengths_symbols():
    text = '@R.function\ndef main(a: R.Tensor(("n", "k"), "float32"), b: R.Tensor(("j", "m"), "float32")):\n    r = R.matmul(a, b)\n    return r\n'
    module = relaxide.relax.transform.LegalizeOps()(relaxide.script.from_source(f"@I.ir_module\nclass Module:\n" + re.sub("^", "    ", text, flags=re.M)))
    lowered = module.script()
    assert re.search(r"assert \w+ == \w+, \(\"ValueError\", \[\"matmul: dimension 0 of `x2` is \w+, which must be the same as", lowered), lowered
