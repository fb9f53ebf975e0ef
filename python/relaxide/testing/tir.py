"""Schedules of matrix products by instructions of devices that compute whole fragments, which tests of such instructions share."""

from dataclasses import dataclass
from typing import Any


@dataclass
class _Fragments:
    """How a product is taken apart, and the kernels that its parts become."""

    k_inner: int
    in_dtype: str
    b_transposed: bool
    factors: tuple
    index_maps: tuple
    load: tuple
    product: str
    fill: str
    store: str
    shared_scope: str
    warp_size: int
    pads_rows: bool


def mma_schedule(
    workload,
    k_inner,
    in_dtype,
    b_transposed,
    i_factors,
    j_factors,
    k_factors,
    index_map_A,
    index_map_B,
    index_map_C,
    ldmatrix_a_intrin,
    ldmatrix_b_intrin,
    mma_intrin,
    mma_fill_intrin,
    mma_store_intrin,
    shared_scope="shared",
):
    """The schedule of a product, whose block is called ``C``, by the ``mma`` instructions of NVIDIA's devices.

    Fragments are 16 by 16, with ``k_inner`` terms; ``i_factors`` and ``j_factors`` (five numbers each) take their rows and columns apart,
    ``k_factors`` (three) the sum. Both operands go through memory of scope ``shared_scope`` and from there to the warp, laid out
    by ``index_map_A`` and ``index_map_B``; ``index_map_C`` lays out the sums. The intrinsics are named as they were registered.
    """
    return _schedule(
        workload,
        _Fragments(
            k_inner,
            in_dtype,
            b_transposed,
            (i_factors, j_factors, k_factors),
            (index_map_A, index_map_B, index_map_C),
            (ldmatrix_a_intrin, ldmatrix_b_intrin),
            mma_intrin,
            mma_fill_intrin,
            mma_store_intrin,
            shared_scope,
            warp_size=32,
            pads_rows=True,
        ),
    )


def mfma_schedule(
    workload,
    k_inner,
    in_dtype,
    b_transposed,
    i_factors,
    j_factors,
    k_factors,
    index_map_A,
    index_map_B,
    index_map_C,
    ldmatrix_a_intrin,
    ldmatrix_b_intrin,
    mfma_intrin,
    mfma_fill_intrin,
    mfma_store_intrin,
    shared_scope="shared",
):
    """What :func:`mma_schedule` is, by the ``mfma`` instructions of AMD's devices, whose warps have 64 threads; rows are not padded."""
    return _schedule(
        workload,
        _Fragments(
            k_inner,
            in_dtype,
            b_transposed,
            (i_factors, j_factors, k_factors),
            (index_map_A, index_map_B, index_map_C),
            (ldmatrix_a_intrin, ldmatrix_b_intrin),
            mfma_intrin,
            mfma_fill_intrin,
            mfma_store_intrin,
            shared_scope,
            warp_size=64,
            pads_rows=False,
        ),
    )


def _schedule(workload, parts: _Fragments) -> Any:
    from .. import IRModule
    from ..s_tir import Schedule

    sch = Schedule(IRModule({"main": workload}))
    product = sch.get_sblock("C")
    rows, columns, terms = sch.get_loops(product)
    rows, fragment_rows = sch.split(rows, factors=[None, 16])
    columns, fragment_columns = sch.split(columns, factors=[None, 16])
    terms, fragment_terms = sch.split(terms, factors=[None, parts.k_inner])
    sch.reorder(rows, columns, terms, fragment_rows, fragment_columns, fragment_terms)
    whole = sch.blockize(fragment_rows)

    i_factors, j_factors, k_factors = parts.factors
    i = sch.split(rows, factors=i_factors)
    j = sch.split(columns, factors=j_factors)
    k = sch.split(terms, k_factors)
    sch.reorder(i[0], j[0], i[1], j[1], j[2], i[2], k[0], k[1], i[3], j[3], k[2], i[4], j[4])
    sch.bind(sch.fuse(i[0], j[0]), "blockIdx.x")
    sch.bind(sch.fuse(i[1], j[1]), "blockIdx.y")
    warps = sch.fuse(j[2], i[2])
    sch.bind(warps, "threadIdx.y")

    for operand in (0, 1):
        _to_shared(sch, whole, operand, k[0], i_factors[2] * j_factors[2], parts)
    loads = [sch.cache_read(whole, operand, "warp") for operand in (0, 1)]
    for load in loads:
        sch.compute_at(load, k[1])
    result = sch.cache_write(whole, 0, "warp")
    sch.reverse_compute_at(result, warps)
    _into_tiles(sch, result, 16, 16)
    sch.decompose_reduction(whole, sch.get_loops(whole)[3])
    zero = sch.get_sblock("C_init")

    tile_b = (16, parts.k_inner) if parts.b_transposed else (parts.k_inner, 16)
    tiles = [_into_tiles(sch, load, *tile) for load, tile in zip(loads, ((16, parts.k_inner), tile_b))]
    for load, index_map in zip(loads, parts.index_maps):
        sch.transform_layout(load, ("write", 0), index_map)
    sch.transform_layout(result, ("read", 0), parts.index_maps[2])
    for tile, intrinsic in zip(tiles, parts.load):
        sch.tensorize(tile, intrinsic)
    sch.tensorize(sch.get_loops(product)[-3], parts.product)
    sch.tensorize(sch.get_loops(zero)[-2], parts.fill)
    sch.tensorize(sch.get_loops(result)[-2], parts.store)
    return sch


def _to_shared(sch, whole, operand, loop, warps, parts):
    """An operand's part is copied by all threads of a block, vector by vector."""
    copy = sch.cache_read(whole, operand, parts.shared_scope)
    sch.compute_at(copy, loop)
    lanes = 16 if parts.in_dtype == "int8" else 8
    elements = sch.fuse(*sch.get_loops(copy)[-2:])
    _, warp, thread, vector = sch.split(elements, factors=[None, warps, parts.warp_size, lanes])
    sch.bind(thread, "threadIdx.x")
    sch.bind(warp, "threadIdx.y")
    sch.vectorize(vector)
    if parts.pads_rows:
        sch.storage_align(copy, 0, axis=-2, factor=32, offset=8 if parts.in_dtype == "float16" else 16)


def _into_tiles(sch, block, height, width):
    """The two innermost loops of a block go tile by tile; gives the outer loop of a tile."""
    rows, columns = sch.get_loops(block)[-2:]
    rows, row = sch.split(rows, factors=[None, height])
    columns, column = sch.split(columns, factors=[None, width])
    sch.reorder(rows, columns, row, column)
    return row
