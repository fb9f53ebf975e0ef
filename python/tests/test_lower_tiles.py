"""Kernels of tiles as kernels of threads: what is launched, what scope ids become, and what implementations are told."""

import pytest

import relaxide as tvm
from relaxide.error import InternalError, PassError
from relaxide.script import tirx as T
from relaxide.script.tirx import tile as Tx
from relaxide.tirx.layout import laneid
from relaxide.tirx.operator.tile_primitive import DispatchContext, fail, list_registered_schedules, predicate, register_dispatch
from relaxide.tirx.operator.tile_primitive.dispatcher import run_dispatch
from relaxide.tirx.transform import LowerTIRx


def lowered(kernel):
    with tvm.target.Target("cuda"):
        return LowerTIRx()(tvm.IRModule({"main": kernel}))["main"]


def lines(kernel):
    return [line.strip() for line in lowered(kernel).script().splitlines() if "=" in line or "for " in line]


#: What an implementation of the copy is told, call after call.
CALLS = []


@register_dispatch("copy", "cuda", variant="told", priority=10)
def probe(op_call, context):
    CALLS.append(context)

    @T.prim_func(private=True)
    def made():
        T.evaluate(0)

    return made


@pytest.fixture
def told():
    CALLS.clear()
    return CALLS


def test_scope_ids_are_numbers_of_threads():
    @T.prim_func(private=True)
    def kernel(A: T.Buffer((512,), "int32")):
        T.device_entry()
        bx, by = T.cta_id([3, 4])
        wg_id = T.warpgroup_id([2])
        warp_id = T.warp_id_in_wg([4])
        lane_id = T.lane_id([32], dtype="uint32")
        A[bx + by + wg_id + warp_id] = T.int32(lane_id)

    text = lines(kernel)
    assert 'for threadIdx_x in T.thread_binding(256, thread="threadIdx.x"):' in text
    assert 'for blockIdx_y in T.thread_binding(4, thread="blockIdx.y"):' in text
    assert "wg_id: T.let[T.int32] = warp_id_in_cta // 4" in text
    assert "warp_id: T.let[T.int32] = warp_id_in_cta % 4" in text
    assert 'lane_id: T.let[T.uint32] = T.Cast("uint32", threadIdx_x % 32)' in text


def test_blocks_of_clusters_and_pairs():
    @T.prim_func(private=True)
    def kernel(A: T.Buffer((512,), "int32")):
        T.device_entry()
        cl = T.cluster_id([5])
        cbx, cby = T.cta_id_in_cluster([2, 3])
        pair = T.cta_id_in_pair()
        tx = T.thread_id([64])
        A[cl + cbx + cby + tx] = pair

    text = lines(kernel)
    assert 'for clusterCtaIdx_y in T.thread_binding(3, thread="clusterCtaIdx.y"):' in text
    assert 'for blockIdx_x in T.thread_binding(10, thread="blockIdx.x"):' in text
    assert 'cl: T.let[T.int32] = T.cuda.mov_sreg(32, "clusterid.x")' in text
    assert 'for blockIdx_y in T.thread_binding(3, thread="blockIdx.y"):' in text
    assert any(line.startswith("pair: T.let[T.int32] = ") and line.endswith("% 2") for line in text)


@pytest.mark.parametrize(
    "condition, laneid, warpid",
    [
        ("warp_id == 1", [32, 0], [1, 1]),
        ("(warp_id == 0) & (lane_id == 3)", [1, 3], [1, 0]),
        ("1 <= warp_id and warp_id < 3", [32, 0], [2, 1]),
        ("(34 <= tid) & (tid < 40)", [6, 2], [1, 1]),
        ("(tid < 64) & (64 > tid)", [32, 0], [2, 0]),
        ("A[0] == 1", [32, 0], [4, 0]),
    ],
)
def test_conditions_narrow_the_threads(told, condition, laneid, warpid):
    tvm_script = f"""
from tvm.script import tirx as T

@T.prim_func(private=True)
def kernel(A: T.Buffer((4,), "int32")):
    T.device_entry()
    T.cta_id([1])
    warp_id = T.warp_id([4])
    lane_id = T.lane_id([32])
    tid = T.thread_id([128])
    if {condition}:
        T.tile.copy(A[0:1], A[1:2], dispatch="told")
    else:
        T.tile.copy(A[0:1], A[1:2], dispatch="told")
"""
    lowered(tvm.script.from_source(tvm_script))
    assert (told[0].inter["laneid"], told[0].inter["warpid"]) == (laneid, warpid)
    assert (told[1].inter["laneid"], told[1].inter["warpid"]) == ([32, 0], [4, 0])
    assert told[0].scope_kind == "thread" and told[0].intra == {} and told[0].is_cuda()


def test_blocks_of_a_pair_are_even_or_odd(told):
    @T.prim_func(private=True)
    def kernel(A: T.Buffer((4,), "int32")):
        T.device_entry()
        cbx, cby = T.cta_id_in_cluster([3, 2])
        pair = T.cta_id_in_pair()
        T.thread_id([32])
        if cbx == 0:
            if pair == 1:
                Tx.copy(A[0:1], A[1:2], dispatch="told")
        if cby == 1:
            if cbx == 1:
                Tx.cta.copy(A[0:1], A[1:2], dispatch="told")

    lowered(kernel)
    assert told[0].inter["cbx"] == [1, 0] and told[0].inter["cby"] == [1, 1, 2]
    assert told[1].inter == {"cbx": [1, 1], "cby": [1, 1]} and told[1].intra == {"laneid": [32, 0], "warpid": [1, 0]}


def test_a_lane_that_an_instruction_chooses(told):
    @T.prim_func(private=True)
    def kernel(A: T.Buffer((4,), "int32")):
        T.device_entry()
        T.warp_id([1])
        lane_id = T.lane_id([32])
        if T.cuda.elect_sync():
            Tx.copy(A[0:1], A[1:2], dispatch="told")

    lowered(kernel)
    count, chosen = told[0].inter["laneid"]
    assert count == 1 and str(chosen) == "T.selector(lane_id, T.cuda.elect_sync())"


def test_what_an_implementation_makes_stands_in_the_place_of_the_call():
    @register_dispatch("fill", "cuda", variant="by_stores", when=[predicate("alone", lambda call, context: context.is_thread())])
    def stores(op_call, context):
        region, value = op_call.args[0], op_call.args[1]
        target, number = region.buffer, tvm.tirx.Var("i", "int32")
        scratch = tvm.tirx.decl_buffer((4,), "float32", "scratch", scope="shared")
        context.add_alloc_buffer(scratch)
        store = tvm.tirx.BufferStore(target, value, [number])
        return tvm.tirx.PrimFunc([], tvm.tirx.For(number, 0, 4, tvm.tirx.ForKind.SERIAL, store))

    @T.prim_func(private=True)
    def kernel(A: T.Buffer((4,), "float32")):
        T.device_entry()
        tx = T.thread_id([32])
        if tx == 0:
            Tx.fill(A[0:4], T.float32(2), dispatch="by_stores")

    text = "\n".join(lines(kernel))
    assert "scratch = T.alloc_shared((4,))" in text and "[i] = T.float32(2.0)" in text
    assert "by_stores" in list_registered_schedules()["tirx.tile.fill"]["cuda"]

    @T.prim_func(private=True)
    def together(A: T.Buffer((4,), "float32")):
        T.device_entry()
        T.thread_id([32])
        Tx.cta.fill(A[0:4], T.float32(2), dispatch="by_stores")

    with pytest.raises(RuntimeError, match="by_stores: alone does not hold"):
        lowered(together)


def test_reasons_of_implementations_are_listed():
    @register_dispatch("exp", "cuda", variant="first", priority=2)
    def first(op_call, context):
        fail("it is too small")

    @register_dispatch("exp", "cuda", variant="second", priority=1)
    def second(op_call, context):
        return None

    from relaxide.tirx.operator.tile_primitive.ops import Exp

    A = tvm.tirx.decl_buffer((4,), "float32", name="A")
    call = Exp(A[0:4], A[0:4])
    context = DispatchContext(tvm.target.Target("cuda"), call.scope, {})
    with pytest.raises(RuntimeError, match="first: it is too small\n  second: it gave no kernel"):
        run_dispatch(call, context)
    other = Exp(A[0:4], A[0:4], dispatch="third")
    with pytest.raises(RuntimeError, match="none called 'third' is registered"):
        run_dispatch(other, context)


def test_kernels_that_cannot_be_launched_are_refused():
    @T.prim_func(private=True)
    def no_threads(A: T.Buffer((4,), "int32")):
        T.device_entry()
        bx = T.cta_id([4])
        A[bx] = 1

    with pytest.raises(InternalError, match="no thread launch parameters"):
        lowered(no_threads)

    @T.prim_func(private=True)
    def spread(A: T.Buffer((64,), "int32", layout=T.TileLayout(T.S[(32, 2) : (1 @ laneid, 1)]))):
        T.device_entry()
        T.thread_id([32])
        A[0] = 1

    with pytest.raises(PassError, match="which thread holds what"):
        lowered(spread)


def test_kernels_without_a_device_part_stay():
    @T.prim_func(private=True)
    def kernel(A: T.Buffer((4,), "int32")):
        A[0] = 1

    assert lowered(kernel).same_as(kernel)
