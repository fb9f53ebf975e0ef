"""Questions about kernels in block form: what they touch, where buffers are needed, what they cost."""

from ..ffi import dtype as _dtype
from ..ir import _api, prim, transform
from ..ir.module import IRModule
from ..sym import Analyzer
from ..tirx import BufferRegion, For, PrimFunc, Range, Stmt, Var
from ..tirx._walk import children, scalars, walk, walk_scalar
from ..tirx.analysis import verify_well_formed
from ..tirx.stmt import AllocBuffer, BufferStore, DeclBuffer, IfThenElse
from .schedule import ScheduleError
from .stmt import SBlock, SBlockRealize


def get_sblock_access_region(block, buffer_var_map):
    """``[read, written, opaque]``: the regions of buffers that a block touches, over one value of its axes.

    ``buffer_var_map`` gives the buffers that count, by themselves or by their addresses. Opaque are whole buffers whose address is
    handed on.
    """
    known = {getattr(key, "data", key): buffer for key, buffer in buffer_var_map.items()}
    reads, writes = ([region for region in regions if region.buffer.data in known] for regions in _api.s_tir.AccessRegions(block))
    return [reads, writes, [_whole(buffer) for buffer in _handed_on(block, known)]]


def get_sblock_read_write_region(block, buffer_var_map):
    """``[read, written]``, where what is opaque counts as both."""
    reads, writes, opaque = get_sblock_access_region(block, buffer_var_map)
    return [_added(reads, opaque), _added(writes, opaque)]


def _added(regions, opaque):
    whole = {region.buffer for region in opaque}
    return [region for region in regions if region.buffer not in whole] + opaque


def _whole(buffer):
    return BufferRegion(buffer, [Range.from_min_extent(0, dim) for dim in buffer.shape])


def _handed_on(block, buffers):
    """The buffers whose address stands in an expression of a block."""
    own = {buffer.data for buffer in block.alloc_buffers} | {match.buffer.data for match in block.match_buffers}
    found = {}
    for stmt in walk(block):
        for scalar in scalars(stmt):
            for part in walk_scalar(scalar):
                if isinstance(part, Var) and part not in own and part in buffers:
                    found.setdefault(buffers[part])
    return list(found)


def detect_buffer_access_lca(func):
    """For each buffer the innermost loop or block that is around all accesses of it; ``None`` where only the kernel is.

    Loops that threads execute are never inside: every thread of them sees the memory.
    """
    places, buffers = {}, {buffer.data: buffer for buffer in func.buffers if buffer is not None}
    _find_places(func.body, (), places, buffers)
    found = {}
    for buffer, paths in places.items():
        common = paths[0]
        for path in paths[1:]:
            same = sum(1 for _ in _while_same(common, path))
            common = common[:same]
        threads = [index for index, stmt in enumerate(common) if _is_thread(stmt)]
        if threads and buffer.scope() in ("global", "shared", "shared.dyn"):
            common = common[: threads[0] + 1]
        found[buffer] = common[-1] if common else None
    return found


def _while_same(one, other):
    for a, b in zip(one, other):
        if not a.same_as(b):
            return
        yield a


def _is_thread(stmt):
    return isinstance(stmt, For) and stmt.thread_binding is not None


def _find_places(stmt, path, places, buffers):
    if isinstance(stmt, (For, SBlock)):
        path = (*path, stmt)
    if isinstance(stmt, SBlock):
        buffers.update({buffer.data: buffer for buffer in stmt.alloc_buffers})
        for match in stmt.match_buffers:
            places.setdefault(match.source.buffer, []).append(path)
    if isinstance(stmt, (AllocBuffer, DeclBuffer)):
        buffers.setdefault(stmt.buffer.data, stmt.buffer)
    if isinstance(stmt, BufferStore):
        places.setdefault(stmt.buffer, []).append(path)
    for scalar in scalars(stmt):
        for part in walk_scalar(scalar):
            if isinstance(part, prim.BufferLoad):
                places.setdefault(part.buffer, []).append(path)
            elif isinstance(part, Var) and part in buffers:
                places.setdefault(buffers[part], []).append(path)
    for part in children(stmt):
        _find_places(part, path, places, buffers)


def find_anchor_sblock(mod):
    """The block of a module that begins with an initial value and does most; ``None`` where no block begins with one."""
    best, most = None, -1.0
    for func in mod.functions.values():
        if not isinstance(func, PrimFunc):
            continue
        for block, times in _blocks(func.body, 1.0):
            work = estimate_tir_flops(block.body) * times
            if block.init is not None and work > most:
                best, most = block, work
    return best


def _blocks(stmt, times):
    """The blocks in a statement, and how often each is executed."""
    if isinstance(stmt, For):
        times *= _number(stmt.extent, {})
    if isinstance(stmt, SBlock):
        yield stmt, times
    for part in children(stmt):
        yield from _blocks(part, times)


def calculate_allocated_bytes(func_or_mod):
    """The bytes that kernels allocate, by name of the kernel and of the memory scope: ``{"main": {"global": 1024}}``.

    A kernel that is given alone is ``"main"``. A length that is not known is a ValueError.
    """
    if isinstance(func_or_mod, PrimFunc):
        return {"main": _allocated(func_or_mod)}
    if not isinstance(func_or_mod, IRModule):
        raise TypeError(f"a kernel or a module is expected, got {type(func_or_mod).__name__}")
    functions = func_or_mod.functions.items()
    return {var.name: _allocated(func) for var, func in functions if isinstance(func, PrimFunc)}


def _allocated(func):
    bytes_of = {}
    for stmt in walk(func.body):
        buffers = stmt.alloc_buffers if isinstance(stmt, SBlock) else [stmt.buffer] if isinstance(stmt, AllocBuffer) else []
        for buffer in buffers:
            elements = 1
            for dim in buffer.shape:
                if getattr(dim, "value", None) is None:
                    raise ValueError(f"the length {dim} of the buffer {buffer.name} is not known")
                elements *= int(dim)
            dtype = _dtype(buffer.dtype)
            size = (elements * dtype.bits * dtype.lanes + 7) // 8
            bytes_of[buffer.scope()] = bytes_of.get(buffer.scope(), 0) + size
    return bytes_of


def _number(scalar, known):
    """A scalar as a number, where counters have their largest value; an unknown one counts as 1."""
    value = getattr(scalar, "value", None)
    if isinstance(value, (int, float)):
        return value
    analyzer = Analyzer()
    for var, (begin, extent) in known.items():
        analyzer.bind(var, Range.from_min_extent(begin, extent))
    bound = analyzer.const_int_bound(scalar)
    return bound.max_value if bound.max_value != bound.POS_INF else 1


#: What counts as one operation; comparisons and choices do, conversions and loads do not.
_COUNTED = (prim.Add, prim.Sub, prim.Mul, prim.Div, prim.Mod, prim.FloorDiv, prim.FloorMod, prim.Min, prim.Max)
_CONDITIONS = (prim.EQ, prim.NE, prim.LT, prim.LE, prim.GT, prim.GE, prim.And, prim.Or, prim.Not)


def estimate_tir_flops(stmt_or_mod):
    """How many operations on data a statement, or all kernels of a module, execute at most.

    Each operator of arithmetic counts as one; of a called function its arguments count. Computing indices and conditions does not
    count, nor does what begins a reduction. Of two branches the larger counts. A kernel whose attribute ``estimated_flops`` says
    the number has that.
    """
    if isinstance(stmt_or_mod, IRModule):
        functions = [func for func in stmt_or_mod.functions.values() if isinstance(func, PrimFunc)]
        return float(sum(_kernel_flops(func) for func in functions))
    if isinstance(stmt_or_mod, PrimFunc):
        return float(_kernel_flops(stmt_or_mod))
    if not isinstance(stmt_or_mod, Stmt):
        raise TypeError(f"a statement, kernel or module is expected, got {type(stmt_or_mod).__name__}")
    return float(_flops(stmt_or_mod, {}))


def _kernel_flops(func):
    said = (func.attrs or {}).get("estimated_flops")
    return int(said) if said is not None else _flops(func.body, {})


def _flops(stmt, known):
    if isinstance(stmt, For):
        inner = _flops(stmt.body, {**known, stmt.loop_var: (stmt.min, stmt.extent)})
        return inner * _number(stmt.extent, known)
    if isinstance(stmt, IfThenElse):
        return _operations(stmt.condition) + max(_flops(part, known) for part in children(stmt))
    if isinstance(stmt, SBlockRealize):
        return _flops(stmt.block.body, known)
    if isinstance(stmt, SBlock):
        return _flops(stmt.body, known)
    own = [stmt.value] if hasattr(stmt, "value") else [stmt.condition] if hasattr(stmt, "condition") else []
    return sum(map(_operations, own)) + sum(_flops(part, known) for part in children(stmt))


def _operations(scalar):
    if isinstance(scalar, (prim.BufferLoad, *_CONDITIONS)):
        return 0
    if isinstance(scalar, prim.Select):
        return max(_operations(scalar.true_value), _operations(scalar.false_value))
    from ..tirx._walk import operands

    return int(isinstance(scalar, _COUNTED)) + sum(map(_operations, operands(scalar)))


@transform.module_pass(opt_level=0, name="OOBChecker")
class _OOBChecker:
    def transform_module(self, mod, ctx):
        """Refuse a module with an access that lies outside of its buffer for sure."""
        for func in mod.functions.values():
            if isinstance(func, PrimFunc):
                _check_bounds(func.body, Analyzer())
        return mod


def OOBChecker():
    """A pass that finds accesses outside of their buffers: one that lies outside for some value of the loops around it is a
    ScheduleError that names the buffer. What cannot be known is let pass."""
    return _OOBChecker()


def _check_bounds(stmt, analyzer):
    if isinstance(stmt, For):
        analyzer = analyzer.clone()
        analyzer.bind(stmt.loop_var, Range.from_min_extent(stmt.min, stmt.extent))
    if isinstance(stmt, SBlockRealize):
        analyzer = analyzer.clone()
        for axis, value in zip(stmt.block.iter_vars, stmt.iter_values):
            analyzer.bind(axis.var, value)
    accesses = [(stmt.buffer, stmt.indices)] if isinstance(stmt, BufferStore) else []
    for scalar in scalars(stmt):
        loads = (part for part in walk_scalar(scalar) if isinstance(part, prim.BufferLoad))
        accesses += [(load.buffer, load.indices) for load in loads]
    for buffer, indices in accesses:
        for axis, (index, dim) in enumerate(zip(indices, buffer.shape)):
            bound, length = analyzer.const_int_bound(index), getattr(dim, "value", None)
            # What is bounded by its type alone is not known.
            bits = getattr(index, "dtype", None) and _dtype(index.dtype).bits or 64
            limits = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
            known = bound.max_value != bound.POS_INF and bound.min_value != bound.NEG_INF
            known = known and (bound.min_value, bound.max_value) != limits
            if known and (bound.min_value < 0 or (length is not None and bound.max_value >= length)):
                message = f"buffer {buffer.name} has {dim} elements along dimension {axis}, and is accessed at {index}, which lies between"
                raise ScheduleError(f"{message} {bound.min_value} and {bound.max_value}")
    for part in children(stmt):
        _check_bounds(part, analyzer)


def is_pure_function(func):
    """Whether a kernel only computes what it returns: it writes to no memory of its caller, and calls nothing that could."""
    return _api.tirx.EffectOf(func) is None


def assert_pure_function(func):
    """True where a kernel is a pure function; else an AssertionError that says why it is not."""
    reason = _api.tirx.EffectOf(func)
    if reason is not None:
        raise AssertionError(f"the kernel is no pure function: {reason}")
    return True


def verify_gpu_code(func, constraints):
    """Whether a kernel keeps to the limits of a device.

    ``constraints`` are numbers by name: ``max_threads_per_block``, ``max_thread_x`` (``y``, ``z``), ``max_shared_memory_per_block`` and
    ``max_local_memory_per_block`` in bytes, ``max_vthread``, ``max_vector_bytes``. Another name is a ValueError.
    """
    known = {"max_threads_per_block", "max_thread_x", "max_thread_y", "max_thread_z", "max_shared_memory_per_block"}
    known |= {"max_local_memory_per_block", "max_vthread", "max_vector_bytes", "max_kernels"}
    unknown = sorted(set(constraints) - known)
    if unknown:
        raise ValueError(f"there is no limit called {', '.join(unknown)}; limits are {', '.join(sorted(known))}")
    threads, used = {}, _allocated(func)
    widest = 0
    for stmt in walk(func.body):
        if _is_thread(stmt):
            threads[stmt.thread_tag] = max(threads.get(stmt.thread_tag, 1), _number(stmt.extent, {}))
        for scalar in scalars(stmt):
            for part in walk_scalar(scalar):
                dtype = _dtype(part.dtype)
                widest = max(widest, dtype.bits * dtype.lanes // 8 if dtype.lanes > 1 else 0)
    of_block = {axis: threads.get(f"threadIdx.{axis}", 1) for axis in "xyz"}
    virtual = max((count for name, count in threads.items() if name.startswith("vthread")), default=1)
    found = {
        "max_threads_per_block": of_block["x"] * of_block["y"] * of_block["z"],
        "max_thread_x": of_block["x"],
        "max_thread_y": of_block["y"],
        "max_thread_z": of_block["z"],
        "max_shared_memory_per_block": used.get("shared", 0) + used.get("shared.dyn", 0),
        "max_local_memory_per_block": used.get("local", 0),
        "max_vthread": virtual,
        "max_vector_bytes": widest,
        "max_kernels": 1,
    }
    return all(found[name] <= int(limit) for name, limit in constraints.items())


__all__ = ["OOBChecker", "assert_pure_function", "calculate_allocated_bytes", "detect_buffer_access_lca", "estimate_tir_flops"]
__all__ += ["find_anchor_sblock", "get_sblock_access_region", "get_sblock_read_write_region", "is_pure_function"]
__all__ += ["verify_gpu_code", "verify_well_formed"]
