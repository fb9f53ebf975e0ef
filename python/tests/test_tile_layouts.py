"""Layouts over threads and memory, buffers that have them, and kernels of tiles. What TVM makes of the same is compared in
``tests/language/test_layouts_against_tvm.py``."""

import pytest

import relaxide as tvm
from relaxide.ir import assert_structural_equal, structural_equal
from relaxide.script import tirx as T
from relaxide.script.tirx import tile as Tx
from relaxide.tirx import layout as ly
from relaxide.tirx.layout import Axis, ComposeLayout, Iter, R, S, TileLayout, laneid, warpid


def test_a_layout_is_written_as_iterators_copies_and_offsets():
    layout = TileLayout(S[8 : 4 @ laneid] + R[4 : 1 @ laneid] + 1 @ laneid + 2 @ warpid + 64)
    assert {axis.name: value for axis, value in layout.offset.items()} == {"laneid": 1, "warpid": 2, "m": 64}
    assert str(layout) == "T.TileLayout(T.S[8:4 @ Axis.laneid] + T.R[4:1 @ Axis.laneid] + (64 + 1 @ Axis.laneid + 2 @ Axis.warpid))"
    assert_structural_equal(TileLayout(64 + S[8 : 4 @ laneid]), TileLayout(S[8:(4 @ laneid)] + 64))
    same = TileLayout.from_iters([Iter(8, 1, "laneid")])
    assert_structural_equal(TileLayout(S[8:"laneid"]), same)
    assert not structural_equal(same, TileLayout(S[8:1]))


def test_what_is_no_layout_is_refused():
    with pytest.raises(TypeError, match="S\\[extents"):
        TileLayout(4)
    with pytest.raises(ValueError, match="2 extents, 1 strides"):
        TileLayout(S[(2, 3):(1,)])
    with pytest.raises(ValueError, match="grouped by shape"):
        TileLayout(S[4:1]).group([3])
    with pytest.raises(tvm.error.InternalError, match="leave out a scope"):
        TileLayout(S[(2, 4) : (1 @ Axis.wgid, 1 @ laneid)]).verify_well_formed()
    with pytest.raises(ValueError, match="swizzle_len <= atom_len"):
        ComposeLayout(3, 4, 3, TileLayout(S[512]))
    with pytest.raises(ValueError, match="Unknown scope"):
        tvm.tirx.ExecScope("block")
    with pytest.raises(RuntimeError, match="Axis.get"):
        Axis("m")


def test_numbers_of_a_layout_are_32_bit():
    layout = TileLayout(S[(8, 4) : (4, 1)]).canonicalize()
    assert str(layout.shard[0].extent.dtype) == "int32"
    with tvm.target.Target("cuda"):
        fused = TileLayout(S[(2, 32) : (1 @ warpid, 1 @ laneid)]).canonicalize()
    assert_structural_equal(fused, TileLayout(S[64 : 1 @ Axis.tx]))
    assert str(TileLayout(S[(8, 4) : (4, 1)]).span().dtype) == "int32"


def test_layouts_are_saved_and_loaded():
    layout = ComposeLayout(3, 3, 3, TileLayout(S[(8, 64) : (64, 1)] + 2 @ warpid))
    assert_structural_equal(tvm.ir.load_json(tvm.ir.save_json(layout)), layout)


@T.prim_func
def tiles(A: T.Buffer((64, 64), "float16")):
    T.device_entry()
    T.cta_id([2])
    lane = T.lane_id([32])
    shared = T.alloc_buffer((64, 64), "float16", scope="shared", layout=ComposeLayout(3, 3, 3, TileLayout(S[(64, 64)])))
    spread = T.alloc_buffer((8, 8), "float16", scope="local", layout=TileLayout(S[(32, 2) : (1 @ laneid, 1)]))
    own = spread.local(2)
    Tx.cta.copy(shared, A)
    Tx.warp.add(spread, shared[0:8, 0:8], 1.0)
    if lane < 4:
        own[0] = T.float16(0)


def test_kernels_of_tiles_are_read_as_they_are_printed():
    text = tiles.script()
    assert "lane = T.lane_id([32])" in text and "T.cta.copy(shared[0:64, 0:64], A[0:64, 0:64])" in text
    again = tvm.script.from_source(text)
    assert_structural_equal(tiles, again)
    assert again.script() == text


def test_compiling_a_kernel_of_tiles_says_that_no_code_is_made_of_it():
    with pytest.raises(Exception, match="no code is made of T.device_entry"):
        tvm.compile(tiles, target="llvm")

    @T.prim_func
    def placed(A: T.Buffer((4, 4), "float32", layout=TileLayout(S[(4, 4) : (1, 4)]))):
        A[0, 1] = T.float32(1)

    with pytest.raises(Exception, match="no code is made of the layout of the buffer `A`"):
        tvm.compile(placed, target="llvm")


def test_buffers_say_where_their_elements_lie():
    plain = tvm.tirx.decl_buffer((4, 4), "float32")
    assert_structural_equal(plain.layout, TileLayout(S[4, 4]))
    assert tvm.tirx.decl_buffer((4, 4), "float32", layout=None).layout is None
    given = tvm.tirx.decl_buffer((8, 8), "float16", layout=TileLayout(S[(32, 2) : (1 @ laneid, 1)]), scope="local")
    assert [int(dim) for dim in given.local().shape] == [2]
    assert_structural_equal(given.view(64).layout, given.layout)
    in_memory = tvm.tirx.decl_buffer((4, 8), "float16", layout=TileLayout(S[(4, 8) : (16, 1)]))
    assert_structural_equal(in_memory.view("float32").layout, TileLayout(S[(4, 4) : (8, 1)]))
    with pytest.raises(ValueError, match="a thread holds 2 elements"):
        given.local(3)
    # The layout that a compact buffer has is as good as none.
    assert_structural_equal(tvm.tirx.decl_buffer((4, 4), layout=TileLayout(S[4, 4])), plain, map_free_vars=True)


def test_scope_ids_that_contradict_each_other_are_refused():
    @T.prim_func(check_well_formed=False)
    def wrong():
        T.device_entry()
        T.warp_id([4])
        T.lane_id([32])
        T.thread_id([64])

    with pytest.raises(tvm.error.DiagnosticError, match="Inconsistent extents for scope cta->thread"):
        tvm.script.from_source(wrong.script())
    with pytest.raises(ValueError, match="Inconsistent extents for scope cta->thread"):
        tvm.tirx.analysis.verify_well_formed(wrong)
    with pytest.raises(ValueError, match="exactly one Var"):
        tvm.tirx.ScopeIdDef([tvm.tirx.Var("a", "int32"), tvm.tirx.Var("b", "int32")], None, "kernel", "cta")


def test_calls_of_tile_primitives_are_nodes():
    A = tvm.tirx.decl_buffer((16,), "float32", name="A")
    call = tvm.tirx.TilePrimitiveCall(A[0:16], 1.0, op="tirx.tile.fill", config={"stages": 2}, dispatch="reg")
    assert call.replace(dispatch=None).dispatch is None and call.with_workspace({"w": A}).workspace["w"].same_as(A)
    with pytest.raises(TypeError, match="Unknown field"):
        call.replace(target="cuda")
    half = tvm.tirx.LambdaExpr(lambda i, j: i < j)
    assert str(half.apply([1, 2])) in ("T.bool(True)", "1 < 2")


def test_copies_of_tensor_memory_name_what_is_wrong():
    with pytest.raises(ValueError, match="expects rows=128, got 64"):
        ly.tmem_datapath_layout("D", 64, 8)
    with pytest.raises(ValueError, match="16-bit type, got int8"):
        ly.tcgen05_atom_layout("16x64b", (64, 64), "int8")
