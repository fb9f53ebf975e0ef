"""Kernels that move keys and values into a cache, within it, and out of it.

A place is a number: the page times the length of a page, and where the token is in it; -1 is nowhere.
"""

from ..... import tirx
from .....script.ir_builder import IRBuilder
from .....script.ir_builder import tirx as T


def _array(name, shape, dtype="int32"):
    return T.match_buffer(T.arg(name, T.handle()), shape, dtype)


def _number(name, dtype="int64"):
    return T.arg(name, tirx.Var(name, dtype))


def _kernel(symbol):
    T.func_name(symbol)
    T.func_attr({"tirx.is_scheduled": True})


def transpose_append(heads, head_dim, dtype, page_size=16):
    """Write the keys and values of tokens to their places."""
    with IRBuilder() as builder:
        with T.prim_func():
            _kernel("tir_kv_cache_transpose_append")
            pages, tokens = tirx.Var("num_pages", "int64"), tirx.Var("num_tokens", "int64")
            cache = _array("pages", (pages, 2, heads, page_size, head_dim), dtype)
            data = [_array(name, (tokens, heads, head_dim), dtype) for name in ("k_data", "v_data")]
            places = _array("position_map", (tokens,))
            with T.serial(tokens) as at:
                place = T.bind(places[at])
                with T.If(place >= 0):
                    with T.Then():
                        with T.grid(heads, head_dim) as (h, f):
                            for which, source in enumerate(data):
                                T.buffer_store(cache, source[at, h, f], [place // page_size, which, h, place % page_size, f])
    return builder.get()


def debug_get_kv(layers, heads, head_dim, dtype):
    """Read the keys and values at places of one layer."""
    with IRBuilder() as builder:
        with T.prim_func():
            _kernel("tir_kv_cache_debug_get_kv")
            pages, size, tokens = (tirx.Var(name, "int64") for name in ("num_pages", "page_size", "num_tokens"))
            cache = _array("pages", (pages, 2, heads, size, head_dim), dtype)
            places = _array("position_map", (tokens,))
            data = [_array(name, (layers, tokens, heads, head_dim), dtype) for name in ("k_data", "v_data")]
            layer = _number("layer_id")
            with T.grid(tokens, heads, head_dim) as (at, h, f):
                place = T.bind(places[at].astype("int64"))
                for which, target in enumerate(data):
                    T.buffer_store(target, cache[place // size, which, h, place % size, f], [layer, at, h, f])
    return builder.get()


def copy_single_page(heads, page_size, head_dim, dtype):
    """Copy the first tokens of a page to another page."""
    with IRBuilder() as builder:
        with T.prim_func():
            _kernel("copy_single_page_cpu")
            cache = _array("pages", (tirx.Var("num_pages", "int64"), 2, heads, page_size, head_dim), dtype)
            source, target, count = _number("src_page_id"), _number("tgt_page_id"), _number("copy_length")
            with T.grid(2, heads, count, head_dim) as (which, h, at, f):
                T.buffer_store(cache, cache[source, which, h, at, f], [target, which, h, at, f])
    return builder.get()


def compact_copy(heads, head_dim, dtype, page_size=16):
    """Copy tokens within the cache, for each sequence in order: ``copy_src_dst_pos`` has the places they are at, and those they go to."""
    with IRBuilder() as builder:
        with T.prim_func():
            _kernel("compact_kv_copy_cpu")
            cache = _array("pages", (tirx.Var("num_pages", "int64"), 2, heads, page_size, head_dim), dtype)
            handles = [T.arg(name, T.handle()) for name in ("copy_length_indptr", "copy_src_dst_pos")]
            batch = _number("batch_size", "int32")
            indptr = T.match_buffer(handles[0], (tirx.Var("batch_plus_1", "int32"),), "int32")
            moves = T.match_buffer(handles[1], (2, tirx.Var("total_copy_length", "int32")), "int32")
            with T.serial(batch) as b:
                first = T.bind(indptr[b])
                with T.serial(indptr[b + 1] - first) as i:
                    source, target = T.bind(moves[0, first + i]), T.bind(moves[1, first + i])
                    with T.grid(2, heads, head_dim) as (which, h, f):
                        value = cache[source // page_size, which, h, source % page_size, f]
                        T.buffer_store(cache, value, [target // page_size, which, h, target % page_size, f])
    return builder.get()


__all__ = ["compact_copy", "copy_single_page", "debug_get_kv", "transpose_append"]
