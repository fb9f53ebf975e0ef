"""Types of calls: what the reference infers for a random call, we infer, and what it refuses, we refuse.

The exchange is text: one source, parsed by both. See ``random_calls`` for the calls and ``type_text.py`` for what counts as equal.
"""

import os
import pathlib
import re

import random_calls as calls
import pytest
import type_text

import relaxide

tvm_script = pytest.importorskip("tvm.script")

SEEDS = 150 if os.environ.get("RELAXIDE_DEEP") else 5

#: Where we differ on purpose: what the call looks like, and why.
DIFFERENCES = {
    "vision.all_class_non_max_suppression": (r"onnx", "the reference promises as many rows as there could be, not as many as there are"),
    "split": (r"indices_or_sections=1,", "one part is a tuple of one, not a bare tensor"),
    "image.grid_sample": (r"NDHWC", "the reference has no such layout"),
    "median": (r"main\(x0: R\.Tensor(\(dtype|\(ndim|[,)])", "the reference gives a tuple, or not, by what it does not know of the shape"),
    "cumsum": (r".", "the reference does not check the axis, and keeps the rank where the flattened tensor is meant"),
    "cumprod": (r".", "as cumsum"),
    "quantize": (r".", "the reference refuses, or not, by the rank that it does not know"),
    "dequantize": (r".", "as quantize"),
    "permute_dims": (r"R\.Tensor(\(dtype=\"\w+\"\))?[,)]", "the reference refuses a tensor of unknown rank"),
    "scatter_elements": (r".", "the reference does not check the axis"),
    "concat": (r'\("m", .*\(\(\d', "the reference forgets the shape where a size is to be a number that it cannot prove"),
    "dynamic_strided_slice": (r"x0: R\.Tensor,", "the reference does not check the bounds of a tensor of unknown rank"),
    "nn.nll_loss": (r"x1: R\.Tensor\(dtype=\"\w+\", ndim=\d\)", "the reference checks ranks only where sizes are known"),
    "stack": (r".", "the reference refuses an unknown rank in front of a known one"),
}
#: The reference lets bools mix with numbers, and gives the left one's dtype; we ask for a conversion.
MIXED = re.compile(r"both sides must have one dtype, but they have .*bool")
#: The reference's text has no names for these.
NAMELESS = [name for name in calls.CALLS if name.startswith("inspect.")]


def reference(source):
    try:
        return type_text.of_y(tvm_script.from_source(source, check_well_formed=False).script())
    except Exception:  # noqa: BLE001 - the reference refuses by several kinds of errors
        return None


def ours(source):
    try:
        return type_text.of_y(relaxide.script.from_source(source, check_well_formed=False).script()), ""
    except Exception as error:  # noqa: BLE001
        return None, str(error)


@pytest.mark.parametrize("name", [name for name in calls.CALLS if name not in NAMELESS])
def test_types_are_the_reference_s(name):
    problems = []
    for seed in range(SEEDS):
        source = calls.module(name, seed)
        theirs, (own, error) = reference(source), ours(source)
        if theirs is None and own is None or type_text.same(theirs, own):
            continue
        pattern = DIFFERENCES.get(name, (None,))[0]
        if MIXED.search(error) or pattern and re.search(pattern, source):
            continue
        line = re.search(r"main\((.*)\):", source).group(1) + " | " + re.search(r"y = (.*)", source).group(1)
        problems.append(f"{line}\n    reference {theirs}\n    ours      {own or error.splitlines()[0]}")
    assert not problems, f"{len(problems)} of {SEEDS}:\n" + "\n".join(problems)


@pytest.mark.parametrize("name", NAMELESS)
def test_inspection_gives_scalars(name):
    for seed in range(SEEDS):
        source = calls.module(name, seed)
        own, error = ours(source)
        axis = re.search(r"R.prim_value\((-?\d+)\)", source)
        if axis and int(axis.group(1)) < 0:
            assert own is None and "axis" in error
        elif own is not None:
            assert re.fullmatch(r"T\.u?int(8|16|32|64)", own)
        else:
            assert "axis" in error


def test_every_operator_of_the_reference_is_known():
    """By name; those over a mesh of devices say that they are not supported."""
    ir = pytest.importorskip("tvm.ir")
    names = {name.removeprefix("relax.") for name in ir.Op.list_op_names() if name.startswith("relax.")}
    assert names, "the reference has no operators?"
    source = "# from tvm.script import relax as R\n\n@R.function\ndef main(x: R.Tensor((2,), \"float32\")):\n    y = R.{}(x)\n    return y\n"
    for name in sorted(names):
        try:
            relaxide.script.from_source(source.format(name))
        except Exception as error:  # noqa: BLE001
            assert "no operator is called" not in str(error), name
            if name.startswith("dist."):
                assert "not supported" in str(error), (name, str(error))


def test_the_list_of_what_is_tested_is_current():
    import list_tested as tested

    assert (tested.HERE / "tested.txt").read_text() == tested.table(), "run tests/operators/list_tested.py, then cargo xtask operators"


def test_hooks_are_where_the_reference_has_them():
    """Gradients, layout rules and precision policies, as the page of operators lists them."""
    ir = pytest.importorskip("tvm.ir")
    rows = {}
    for line in (pathlib.Path(__file__).parents[2] / "docs" / "operators.md").read_text().splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)]
        if len(cells) > 6 and cells[1].startswith("`"):
            rows[cells[1].strip("`").split("(")[0]] = cells[5]
    policy = {None: "", 0: "M", 1: "m", 2: ""}
    differences = []
    for name in sorted(n for n in ir.Op.list_op_names() if n.startswith("relax.") and not n.startswith(("relax.ccl.", "relax.dist."))):
        op, own = ir.Op.get(name), name.removeprefix("relax.")
        code = op.get_attr("TMixedPrecisionPolicy")
        theirs = ("g" if op.get_attr("FPrimalGradient") else "") + ("l" if op.get_attr("FRelaxInferLayout") else "")
        theirs += policy[None if code is None else int(code)]
        if rows.get(own, "") != theirs:
            differences.append(f"{own}: {rows.get(own)!r}, the reference {theirs!r}")
    assert differences == []
