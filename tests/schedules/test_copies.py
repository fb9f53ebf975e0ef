"""Copies, partitions, padded layouts and sampled places: results stay, traces cross as JSON, equal seeds decide alike."""

import numpy as np
import pytest
import sequences_of_copies  # noqa: F401  (enters more)
import sequences_of_regions  # noqa: F401  (enters more)
from kernels import KERNELS
from sequences import SEQUENCES

import relaxide
from relaxide import s_tir

tvm = pytest.importorskip("tvm", reason="apache-tvm is not installed; it is the other side of these tests")

from beside_tvm import assert_same_program  # noqa: E402
from tvm import s_tir as their_s_tir  # noqa: E402

RANDOM = np.random.default_rng(5)

COPIES = [row for row in SEQUENCES if row[2].__module__ == "sequences_of_copies"]
#: A parameter gets another shape, or sizes are not known.
CHANGED = {"layouts_of_result_and_operand_with_padding", "sampled_tile_of_an_unknown_extent"}


def ours(kernel, seed=1):
    return s_tir.Schedule(relaxide.script.from_source(KERNELS[kernel]), seed=seed)


def theirs(kernel, seed=1):
    return their_s_tir.Schedule(tvm.script.from_source(KERNELS[kernel]), seed=seed)


def results(module, arrays):
    """All arrays behind the compiled kernel."""
    tensors = [relaxide.runtime.tensor(array) for array in arrays]
    relaxide.build(module)["main"](*tensors)
    return [tensor.numpy() for tensor in tensors]


@pytest.mark.parametrize(("kernel", "name", "steps"), COPIES, ids=[f"{kernel}-{name}" for kernel, name, _ in COPIES])
def test_results_stay(kernel, name, steps):
    if name in CHANGED:
        pytest.skip("a parameter is laid out anew")
    sch = ours(kernel)
    before = sch.mod
    steps(sch)
    arrays = [RANDOM.random([int(dim) for dim in buffer.shape], "float32") for buffer in before["main"].buffers]
    for found, expected in zip(results(sch.mod, arrays), results(before, arrays)):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def plain(value):
    """JSON of TVM as lists, numbers and texts."""
    if isinstance(value, (str, bool, float)) or value is None:
        return str(value) if isinstance(value, str) else value
    if isinstance(value, dict) or hasattr(value, "items"):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "value"):
        return value.value
    if isinstance(value, int):
        return int(value)
    return [plain(item) for item in value]


def crosses(schedule):
    """Whether TVM writes the trace as JSON: not where it holds expressions."""
    try:
        return plain(schedule.trace.as_json())
    except (TypeError, tvm.error.InternalError):
        return None


@pytest.mark.parametrize(("kernel", "name", "steps"), SEQUENCES, ids=[f"{kernel}-{name}" for kernel, name, _ in SEQUENCES])
def test_traces_cross_as_json(kernel, name, steps):
    first, other = ours(kernel), theirs(kernel)
    steps(first)
    steps(other)
    json = crosses(other)
    again = ours(kernel)
    s_tir.Trace.apply_json_to_schedule(first.trace.as_json(), again)
    assert again.mod.script() == first.mod.script()
    if json is None:
        return
    from_tvm = ours(kernel)
    s_tir.Trace.apply_json_to_schedule(json, from_tvm)
    assert from_tvm.mod.script() == first.mod.script()
    if name == "sampled_tile_of_an_unknown_extent":
        return  # TVM does not read its own.
    from_us = theirs(kernel)
    their_s_tir.Trace.apply_json_to_schedule(first.trace.as_json(), from_us)
    tvm.ir.assert_structural_equal(from_us.mod, other.mod)


@pytest.mark.parametrize("seed", [1, 7, 42, 2147483646])
def test_equal_seeds_decide_alike(seed):
    def decide(sch):
        found = []
        for block in ("conv", "pad", "relu"):
            for loop in sch.get_loops(sch.get_sblock(block)):
                for n, most in ((1, 0), (2, 4), (3, 64), (4, 16)):
                    if n > 1:
                        found += [int(sch.get(v)) for v in sch.sample_perfect_tile(loop, n, most)]
                found += [int(sch.get(v)) for v in sch.sample_partitioned_tile(loop, 3, 1, 1)]
            found.append(int(sch.get(sch.sample_categorical([5, 6, 7, 8], [0.1, 0.2, 0.3, 0.4]))))
            sch.sample_compute_location(sch.get_sblock(block))
        found += [int(decision) for step, decision in sch.trace.decisions.items() if "Location" in step.kind.name]
        return [*found, sch.fork_seed()]

    assert decide(ours("conv", seed)) == decide(theirs("conv", seed))


def test_an_expression_of_samples_comes_back_from_json():
    sch = ours("elementwise")
    number = sch.sample_categorical([2, 4], [0.5, 0.5], decision=1)
    sch.split(sch.get_loops(sch.get_sblock("B"))[1], [None, number * 2])
    again = ours("elementwise")
    s_tir.Trace.apply_json_to_schedule(sch.trace.as_json(), again)
    assert again.mod.script() == sch.mod.script()


def test_what_clips_is_executed_at_each_step_of_its_sum():
    source = KERNELS["linear"].replace("D[vi, vj] = C[vi, vj] + b[vj]", "D[vi, vj] = T.max(C[vi, vj] + b[vj], T.float32(0))")
    other = their_s_tir.Schedule(tvm.script.from_source(source))
    other.fuse_reduction_epilogue("C", "D")
    sch = s_tir.Schedule(relaxide.script.from_source(source))
    sch.fuse_reduction_epilogue("C", "D")
    assert_same_program(sch.mod, other.mod)


def test_padding_can_be_asked_about():
    for sch in (ours("conv"), theirs("conv")):
        pad, conv = sch.get_sblock("pad"), sch.get_sblock("conv")
        assert sch.can_decompose_padding(pad, sch.get_loops(pad)[0])
        assert not sch.can_decompose_padding(conv, sch.get_loops(conv)[0])
        assert "decompose" not in str(sch.trace)


def test_a_parameter_with_padding_has_another_shape():
    sch, other = ours("elementwise"), theirs("elementwise")
    for each in (sch, other):
        each.transform_layout("B", ("read", 0), lambda i, j: (i, j // 5, j % 5), pad_value=0.0)
    assert [int(dim) for dim in sch.mod["main"].buffers[0].shape] == [16, 7, 5]
    # TVM adds a block that says what the padding holds; nothing here makes use of it.
    assert "buffer_A_assumptions" in other.mod.script()
