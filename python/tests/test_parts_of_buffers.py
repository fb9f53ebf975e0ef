"""Steps of a schedule on blocks that touch a part of a buffer, reach it by a pointer, or have axes of one value."""

import numpy as np
import pytest
import relaxide as tvm
from relaxide import s_tir
from relaxide.script import tirx as T
from test_places_of_copies import two_readers


@T.prim_func(s_tir=True)
def trimmed(A: T.Buffer((12, 10), "float32"), C: T.Buffer((9, 10), "float32")):
    B = T.sblock_alloc_buffer((12, 10), "float32")
    for i, j in T.grid(12, 10):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(9, 10):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + 1.0


@T.prim_func(s_tir=True)
def trimmed_tiles(A: T.Buffer((16,), "float32"), C: T.Buffer((13,), "float32")):
    B = T.sblock_alloc_buffer((4, 4), "float32")
    for i, j in T.grid(4, 4):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi * 4 + vj] * 2.0
    for i in range(13):
        with T.sblock("C"):
            v = T.axis.spatial(13, i)
            C[v] = B[v // 4, v % 4] + 1.0


@T.prim_func(s_tir=True)
def every_other(A: T.Buffer((16,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.sblock_alloc_buffer((16,), "float32")
    for i in range(16):
        with T.sblock("B"):
            v = T.axis.spatial(16, i)
            B[v] = A[v] * 2.0
    for i in range(8):
        with T.sblock("C"):
            v = T.axis.spatial(8, i)
            C[v] = B[v * 2] + 1.0


@T.prim_func(s_tir=True)
def in_rows(A: T.Buffer((24,), "float32"), D: T.Buffer((1, 4, 6), "float32")):
    B = T.sblock_alloc_buffer((24,), "float32")
    C = T.sblock_alloc_buffer((4, 6), "float32")
    for i in range(24):
        with T.sblock("B"):
            v = T.axis.spatial(24, i)
            B[v] = A[v] * 2.0
    for i, j in T.grid(4, 6):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi * 6 + vj] + 1.0
    for n, i, j in T.grid(1, 4, 6):
        with T.sblock("D"):
            vn, vi, vj = T.axis.remap("SSS", [n, i, j])
            D[vn, vi, vj] = C[vi, vj] * 3.0


@T.prim_func(s_tir=True)
def product(A: T.Buffer((8, 12), "float32"), B: T.Buffer((12, 6), "float32"), C: T.Buffer((8, 6), "float32")):
    for i, j, k in T.grid(8, 6, 12):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(C[vi, vj], A[vi, vk], B[vk, vj])
            T.writes(C[vi, vj])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] = C[vi, vj] + A[vi, vk + vj // 6] * B[vk, vj]


@T.prim_func(s_tir=True)
def one_row(A: T.Buffer((1, 16), "float32"), C: T.Buffer((1, 16), "float32")):
    B = T.sblock_alloc_buffer((1, 16), "float32")
    for i, j in T.grid(1, 16):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(1, 16):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + 1.0


@T.prim_func(s_tir=True)
def by_pointer(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.sblock_alloc_buffer((16,), "float32")
    with T.sblock("B"):
        T.reads(A[0:16])
        T.writes(B[0:16])
        T.evaluate(T.call_extern("int32", "fill", B.data, A.data, 16))
    for i in range(16):
        with T.sblock("C"):
            v = T.axis.spatial(16, i)
            C[v] = B[v] + 1.0


@T.prim_func(s_tir=True)
def with_gaps(A: T.Buffer((4, 16), "float32"), B: T.Buffer((4, 16), "float32")):
    for i, j in T.grid(4, 8):
        with T.sblock("B"):
            vi = T.axis.spatial(4, i)
            vj = T.axis.spatial(16, j * 2)
            B[vi, vj] = A[vi, vj] * 2.0


def results(kernel):
    """What a kernel makes of numbers that are always the same; whatever it does not write is minus one."""
    rng = np.random.default_rng(5)
    values = [tvm.runtime.tensor(rng.random([int(d) for d in b.shape], dtype="float32") - 2) for b in kernel.buffer_map.values()]
    tvm.compile(kernel, "llvm")(*values)
    return [value.numpy() for value in values]


def same(before, sch):
    for expected, result in zip(results(before), results(sch.mod["main"])):
        np.testing.assert_allclose(expected, result, rtol=1e-6)


@pytest.mark.parametrize("kernel, predicate", [(trimmed, "i < 9"), (trimmed_tiles, "i * 4 + j < 13")])
def test_a_consumer_of_a_part_is_inlined_under_a_predicate(kernel, predicate):
    sch = s_tir.Schedule(kernel)
    sch.reverse_compute_inline(sch.get_sblock("C"))
    assert f"T.where({predicate})" in sch.mod["main"].script()
    same(kernel, sch)


def test_a_consumer_that_skips_elements_stays():
    sch = s_tir.Schedule(every_other)
    with pytest.raises(s_tir.ScheduleError, match="do not follow"):
        sch.reverse_compute_inline(sch.get_sblock("C"))


@pytest.mark.parametrize("order", ["CD", "DC"])
def test_chains_are_inlined_in_each_order(order):
    sch = s_tir.Schedule(in_rows)
    for name in order:
        sch.reverse_compute_inline(sch.get_sblock(name))
    (block,) = sch.get_child_blocks(sch.get_sblock("root"))
    region = sch.get(block).writes[0].region
    assert {str(axis.min.ty.dtype) for axis in region} == {"int32"}, "constants have the indices' type"
    same(in_rows, sch)


def test_all_readers_read_a_copy_that_is_made_in_a_loop_of_some():
    sch = s_tir.Schedule(two_readers)
    sch.cache_read(sch.get_sblock("C"), 0, "global")
    reads = [sch.get(sch.get_sblock(name)).reads[0].buffer.name for name in "CD"]
    assert reads == ["B_global", "B_global"]
    same(two_readers, sch)


def test_a_copy_stands_in_front_of_who_waits_for_it():
    sch = s_tir.Schedule(two_readers)
    sch.cache_write(sch.get_sblock("B"), 0, "global", consumer_blocks=[sch.get_sblock("C")])
    root = sch.get(sch.get_sblock("root"))
    assert len(root.body.seq) == 3, "the copy is no part of the first loop: only D waits for it"
    same(two_readers, sch)
    sch = s_tir.Schedule(two_readers)
    sch.cache_read(sch.get_sblock("D"), 0, "global", consumer_blocks=[sch.get_sblock("D")])
    assert sch.get(sch.get_sblock("root")).body.seq[1].body.block.name_hint == "B_global"
    same(two_readers, sch)


@pytest.mark.parametrize("step", ["cache_read", "cache_write"])
def test_who_is_handed_the_memory_gets_the_copys(step):
    sch = s_tir.Schedule(by_pointer)
    block = sch.get_sblock("B")
    copy = "A_shared" if step == "cache_read" else "B_shared"
    getattr(sch, step)(block, 0, "shared")
    call = sch.get(block).body.value
    assert copy in [str(arg).removesuffix(".data") for arg in call.args], call


def test_a_reindexed_sum_says_what_it_reads():
    sch = s_tir.Schedule(product)
    sch.reindex(sch.get_sblock("C"), ("write", 0))
    block = sch.get(sch.get_sblock("C"))
    assert [r.buffer.name for r in block.reads] == ["C_reindex", "A", "B"]
    same(product, sch)


def test_a_reindexed_copy_has_the_axes_that_its_elements_depend_on():
    sch = s_tir.Schedule(product)
    copy = sch.reindex(sch.get_sblock("C"), ("read", 1))
    shape = [int(d) for d in sch.get(copy).writes[0].buffer.shape]
    assert shape == [8, 12], "vj // 6 is zero"
    same(product, sch)


def test_a_reindexed_result_of_one_element_has_its_axes():
    @T.prim_func(s_tir=True)
    def dot(A: T.Buffer((1, 12), "float32"), B: T.Buffer((12, 1), "float32"), C: T.Buffer((1, 1), "float32")):
        for i, j, k in T.grid(1, 1, 12):
            with T.sblock("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    sch = s_tir.Schedule(dot)
    copy = sch.reindex(sch.get_sblock("C"), ("write", 0))
    assert [int(d) for d in sch.get(copy).reads[0].buffer.shape] == [1, 1]
    same(dot, sch)


@pytest.mark.parametrize("step", ["layout", "axes"])
def test_axes_of_one_value_stay_called(step):
    sch = s_tir.Schedule(one_row)
    block = sch.get_sblock("B")
    if step == "layout":
        sch.transform_layout(block, ("write", 0), lambda i, j: (i, j // 4, j % 4))
    else:
        sch.transform_block_layout(block, lambda i, j: (j, i))
    index = sch.get(block).writes[0].region[0].min
    assert index.same_as(sch.get(block).iter_vars[0 if step == "layout" else 1].var)
    same(one_row, sch)


def test_iterations_with_gaps_keep_their_order():
    sch = s_tir.Schedule(with_gaps)
    i, j = sch.get_loops(sch.get_sblock("B"))
    with pytest.raises(s_tir.ScheduleError, match="not affine"):
        sch.reorder(j, i)


def test_a_buffer_without_a_scope_is_where_all_see_it():
    @T.prim_func(s_tir=True)
    def kernel(A: T.Buffer((8,), "float32")):
        B = T.sblock_alloc_buffer((8,), "float32", scope="")
        for i in range(8):
            with T.sblock("A"):
                v = T.axis.spatial(8, i)
                B[v] = 1.0
                A[v] = B[v]

    assert kernel.body.block.alloc_buffers[0].scope() == "global"


@T.prim_func(s_tir=True)
def by_another_name(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.sblock_alloc_buffer((16,), "float32")
    for i in range(16):
        with T.sblock("B"):
            v = T.axis.spatial(16, i)
            T.reads(A[v])
            T.writes(B[v])
            part = T.match_buffer(B[v], (), offset_factor=1)
            part[()] = A[v] * 2.0
    for i in range(16):
        with T.sblock("C"):
            v = T.axis.spatial(16, i)
            C[v] = B[v] + 1.0


def test_other_names_of_parts_follow_the_buffer():
    sch = s_tir.Schedule(by_another_name)
    block = sch.get_sblock("B")
    sch.set_scope(block, 0, "shared")
    (part,) = sch.get(block).match_buffers
    assert part.buffer.scope() == "shared" and part.source.buffer.scope() == "shared"
    sch = s_tir.Schedule(by_another_name)
    sch.unsafe_set_dtype(sch.get_sblock("B"), 0, "float16")
    (part,) = sch.get(sch.get_sblock("B")).match_buffers
    assert {str(part.buffer.dtype), str(part.source.buffer.dtype)} == {"float16"}
    store = sch.get(sch.get_sblock("B")).body
    assert store.buffer.same_as(part.buffer) and str(store.value.dtype) == "float16"


@pytest.mark.parametrize("storage, rows", [("shared", 16), ("local", 4)])
def test_a_copy_that_threads_share_holds_what_they_all_touch(storage, rows):
    @T.prim_func(s_tir=True)
    def kernel(A: T.Buffer((64, 8), "float32"), B: T.Buffer((64, 8), "float32")):
        for bx in T.thread_binding(4, thread="blockIdx.x"):
            for tx in T.thread_binding(4, thread="threadIdx.x"):
                for k in range(8):
                    for i in range(4):
                        with T.sblock("B"):
                            vi = T.axis.spatial(64, bx * 16 + tx * 4 + i)
                            vk = T.axis.spatial(8, k)
                            B[vi, vk] = A[vi, vk] + 1.0

    sch = s_tir.Schedule(kernel)
    block = sch.get_sblock("B")
    copy = sch.read_at(sch.get_loops(block)[2], block, 0, storage)
    assert int(sch.get(copy).reads[0].region[0].extent) == rows


@pytest.mark.parametrize("text", ["SSR", "", '""', '"', "\\"])
def test_texts_come_back_from_json_as_they_were(text):
    sch = s_tir.Schedule(trimmed)
    sch.annotate(sch.get_sblock("B"), "note", text)
    again = s_tir.Schedule(trimmed)
    s_tir.schedule.Trace.apply_json_to_schedule(sch.trace.as_json(), again)
    assert again.get(again.get_sblock("B")).annotations["note"] == text


def test_a_range_of_known_length_is_read_with_it():
    @T.prim_func(s_tir=True)
    def kernel(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(12):
            with T.sblock("B"):
                v = T.axis.spatial(12, i)
                T.reads(A[v + 1 : v * 2 + 4 - v])
                T.writes(B[v])
                B[v] = A[v + 1] + A[v + 3]

    assert int(kernel.body.block.body.body.block.reads[0].region[0].extent) == 3


def test_a_removed_variable_is_out_of_range():
    sch = s_tir.Schedule(trimmed)
    block = sch.get_sblock("B")
    sch.remove_rv(block)
    for kind in (IndexError, s_tir.ScheduleError):
        with pytest.raises(kind, match="not of this schedule"):
            sch.get(block)
