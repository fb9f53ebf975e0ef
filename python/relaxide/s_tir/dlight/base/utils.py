"""Numbers that rules ask for."""

from ....ffi import dtype as _dtype

#: Threads that a block of each kind of device should have.
_THREADS = {"cuda": 1024, "rocm": 256, "metal": 256, "opencl": 256}


def get_bytes(dtype):
    """The bytes of an element type; parts of one count whole."""
    dtype = _dtype(getattr(dtype, "dtype", dtype))
    return (dtype.bits * dtype.lanes + 7) // 8


def get_extent(sch, loop_rv):
    """How often a loop runs: a number, or an expression where it is not known."""
    extent = sch.get(loop_rv).extent
    return getattr(extent, "value", extent)


def auto_vectorize(sch, loop, max_vec):
    """Make vectors of at most ``max_vec`` iterations of a loop; nothing where its length is not known."""
    extent = get_extent(sch, loop)
    if isinstance(extent, int):
        sch.vectorize(loop if extent <= max_vec else sch.split(loop, factors=[None, max_vec])[-1])


def max_threads_per_block(target):
    """How many threads a block may have on a target."""
    for name in ("max_threads_per_block", "max_num_threads"):
        said = target.attrs.get(name)
        if said is not None:
            return int(said)
    return 1024 if target.kind.name == "cuda" else 256


def _largest_power(limit):
    """The largest power of two that is not above a limit."""
    return 1 << (limit.bit_length() - 1)


def suggest_threads_per_block(target, loops, max_threads_for_dynamic_loop=32):
    """How many threads should share each loop, powers of two whose product a block of the target may have.

    Loops of unknown length get at most ``max_threads_for_dynamic_loop``, the first of them what is left over.
    """
    left = _THREADS.get(target.kind.name, 64)
    counts, unknown = [], []
    for index, loop in enumerate(loops):
        extent = getattr(loop.extent, "value", None)
        if extent is None:
            unknown.append(index)
            counts.append(None)
            continue
        counts.append(_largest_power(min(extent, left)))
        left //= counts[-1]
    for index in unknown:
        counts[index] = _largest_power(min(max_threads_for_dynamic_loop, left))
        left //= counts[index]
    if unknown:
        counts[unknown[0]] *= left
    return counts


__all__ = ["auto_vectorize", "get_bytes", "get_extent", "max_threads_per_block", "suggest_threads_per_block"]
