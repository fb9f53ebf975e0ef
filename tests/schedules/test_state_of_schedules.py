"""What a schedule tells of itself: references to blocks and loops, what flows between blocks, functions, copies."""

import pytest
from kernels import KERNELS

import relaxide
from relaxide import s_tir

tvm = pytest.importorskip("tvm", reason="apache-tvm is not installed; it is the other side of these tests")

from tvm import s_tir as their_s_tir  # noqa: E402


def both(kernel):
    source = KERNELS[kernel]
    return (
        s_tir.Schedule(relaxide.script.from_source(source), seed=1),
        their_s_tir.Schedule(tvm.script.from_source(source), seed=1),
    )


def test_every_method_of_tvms_schedule_is_there():
    machinery = {"AnnotationValueT", "PrimAnnotationValueT", "id_", "is_", "same_as"}
    theirs = {name for name in dir(their_s_tir.Schedule) if not name.startswith("_")} - machinery
    assert theirs - set(dir(s_tir.Schedule)) == set()


def test_references_lead_to_blocks_and_loops():
    for sch in both("elementwise"):
        block = sch.get_sblock("B")
        i, j = sch.get_loops(block)
        reference = sch.get_sref(block)
        assert reference.stmt.name_hint == "B"
        assert reference.parent.stmt.loop_var.name == "j"
        assert reference.parent.parent.stmt.loop_var.name == "i"
        root = reference.parent.parent.parent
        assert (root.stmt.name_hint, root.parent) == ("root", None)
        assert (sch.get_sref(i).seq_index, sch.get_sref(j).seq_index) == (0, -1)
        assert sch.get_sref(sch.get_loops("C")[0]).seq_index == 1
        assert sch.get(reference).name_hint == "B"
        assert sch.get_sref(sch.get(block)).stmt.same_as(sch.get(block))
        assert sch.state.get_sref(sch.get(i)).stmt.loop_var.name == "i"


def test_a_reference_ends_with_its_block():
    sch, _ = both("elementwise")
    reference = sch.get_sref(sch.get_sblock("B"))
    node = reference.stmt
    sch.compute_inline("B")
    assert reference.stmt is None and reference.parent is None and reference.seq_index == -1
    assert sch.state.get_sref(node) is None


def test_sampled_places_have_references_of_their_own():
    sch, _ = both("conv")
    inline = sch.get_sref(sch.sample_compute_location("pad", decision=-2))
    stays = sch.get_sref(sch.sample_compute_location("pad", decision=-1))
    assert (inline, stays) == (s_tir.StmtSRef.inline_mark(), s_tir.StmtSRef.root_mark())
    assert inline != stays and stays.stmt is None


@pytest.mark.parametrize("kernel", ["elementwise", "matmul", "softmax", "conv"])
def test_dependences_of_a_scope(kernel):
    def dependences(sch):
        scope = sch.state.get_sblock_scope(sch.get_sref(sch.get_sblock("root")))
        blocks = [sch.get_sref(block) for block in sch.get_child_blocks(sch.get_sblock("root"))]

        def names(deps):
            return sorted((dep.src.stmt.name_hint, dep.dst.stmt.name_hint, int(dep.kind)) for dep in deps)

        return [(names(scope.get_deps_by_src(block)), names(scope.get_deps_by_dst(block))) for block in blocks]

    ours, theirs = both(kernel)
    assert dependences(ours) == dependences(theirs)
    for sch in (ours, theirs):
        sch.decompose_reduction("C", sch.get_loops("C")[2]) if kernel == "matmul" else None
    assert dependences(ours) == dependences(theirs)


def test_the_function_to_work_on():
    for package, kind, script in ((relaxide, s_tir, relaxide.script), (tvm, their_s_tir, tvm.script)):
        kernel = script.from_source(KERNELS["dynamic"])["main"]
        sch = kind.Schedule(package.IRModule({"f": kernel, "g": kernel}))
        assert sch.func_working_on is None
        with pytest.raises(ValueError, match="function"):
            sch.get_sblock("B")
        with pytest.raises(Exception, match="nope"):
            sch.work_on("nope")
        sch.work_on("g")
        assert sch.func_working_on.name_hint == "g"
        assert 'func_name="g"' in (sch.get_sblock("B") and str(sch.trace))


def test_copies_and_forgotten_variables():
    for sch in both("elementwise"):
        block = sch.get_sblock("B")
        copied = sch.copy()
        sch.compute_inline(block)
        assert copied.get(block).name_hint == "B"
        copied.remove_rv(block)
        with pytest.raises(Exception, match="variable|Cannot find"):
            copied.get(block)


def test_a_schedule_without_a_trace():
    for kind, script in ((s_tir, relaxide.script), (their_s_tir, tvm.script)):
        sch = kind.Schedule._create_non_traced(script.from_source(KERNELS["elementwise"]))
        sch.compute_inline(sch.get_sblock("B"))
        assert sch.trace is None and sch.copy().trace is None
    sch.mod  # noqa: B018


def test_a_schedule_shows_itself(capsys):
    sch, _ = both("elementwise")
    sch.compute_inline("B")
    sch.show()
    shown = capsys.readouterr().out
    assert "T.sblock" in shown and "compute_inline" in shown
    s_tir.Schedule._create_non_traced(sch.mod).show()
    assert "apply_trace" not in capsys.readouterr().out
