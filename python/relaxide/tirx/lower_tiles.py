"""LowerTIRx: kernels of tiles as kernels of threads.

::

    T.device_entry()                           blockIdx_x = T.launch_thread("blockIdx.x", 4)
    bx = T.cta_id([4])                         threadIdx_x = T.launch_thread("threadIdx.x", 128)
    warp_id = T.warp_id([4])            →      warp_id_in_cta = T.tvm_warp_shuffle(…, threadIdx_x // 32, …)
    lane_id = T.lane_id([32])                  bx, warp_id, lane_id = blockIdx_x, warp_id_in_cta, threadIdx_x % 32
    T.cta.copy(B[0:64], A[0:64])               …                       # what an implementation makes of the copy

How many blocks and threads are launched follows from the scope ids. An operation on tiles is replaced by what the first implementation that fits
makes of it (:mod:`relaxide.tirx.operator.tile_primitive.dispatcher`), which is told the threads at its place. Buffers become flat.

Buffers whose layout says more than rows in memory are refused: what of them a thread holds is not computed here.
"""

from itertools import zip_longest
from math import prod

from .. import _core
from ..error import InternalError, PassError
from ..ir import _api
from ..ir.module import IRModule
from ..ir.prim import Cast, const
from ..ir.transform import Pass
from ..target import Target
from . import _walk
from .active_threads import Conditions
from .expr import ThreadAxis, Var
from .function import PrimFunc
from .device_intrinsic import tvm_warp_shuffle
from .op import call_intrin
from .operator.tile_primitive.dispatcher import run_dispatch
from .stmt import AllocBuffer, AttrStmt, Bind, DeclBuffer, Evaluate, For, ForKind, IfThenElse, SeqStmt, stmt_list
from .tile_primitive import DispatchContext, ScopeIdDefStmt, TilePrimitiveCall
from .transform import prim_func_pass

#: The bindings of scope ids by number: what is counted within what.
_CLUSTERS, _BLOCKS, _IN_CLUSTER, _GROUPS, _WARPS, _WARPS_OF_GROUP, _LANES, _THREADS, _THREADS_OF_GROUP, _PAIR = range(10)
_PARTS = "xyz"
#: The axes of threads from the outermost loop inwards, as TVM has them without clusters and with them.
_ORDER = ("blockIdx.x", "threadIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.y", "threadIdx.z")
_ORDER_IN_CLUSTERS = (
    "clusterCtaIdx.x", "blockIdx.z", "clusterCtaIdx.y", "clusterCtaIdx.z", "blockIdx.x", "threadIdx.x", "blockIdx.y", "threadIdx.y",
    "threadIdx.z", "preferredClusterCtaIdx.x", "preferredClusterCtaIdx.y", "preferredClusterCtaIdx.z",
)  # fmt: skip
_ENTRY, _WARP, _ALL_LANES = "tirx.device_entry", 32, 4294967295
#: What scope ids without a name are called.
_UNNAMED = ("", "v")


def LowerTIRx():
    """Kernels of tiles become kernels of threads: what is launched follows from scope ids, operations on tiles are implemented.

    Returns
    -------
    Pass
    """
    return prim_func_pass(_lower, opt_level=0, name="tirx.LowerTIRx")


def _lower(func, _mod, _ctx):
    if not any(isinstance(stmt, AttrStmt) and stmt.attr_key == _ENTRY for stmt in _walk.walk(func.body)):
        return func
    _check_layouts(func)
    body = _walk.rebuilt(func.body, lambda stmt: _device_part(func, stmt))
    return _flat(func.with_body(body))


def _device_part(func, stmt):
    if not isinstance(stmt, AttrStmt) or stmt.attr_key != _ENTRY:
        return None
    definitions = [getattr(one, "def") for one in _walk.walk(stmt.body) if isinstance(one, ScopeIdDefStmt)]
    launch = _Launch(definitions)
    target = func.attrs.get("target") if func.attrs else None
    tiles = _Tiles(launch, Conditions(definitions, launch.threads), Target.current() if target is None else Target(target))
    body = tiles.lowered(stmt.body, tiles.conditions.all)
    first = [AllocBuffer(buffer) for buffer in tiles.allocated] + tiles.first_of_device
    inside = _sequence([*launch.numbers(), *first, *stmt_list(body)])
    return _sequence([*tiles.first_of_host, launch.around(inside)])


def _sequence(stmts):
    kept = [part for stmt in stmts for part in stmt_list(stmt)]
    kept = [stmt for stmt in kept if not _is_nothing(stmt)] or [Evaluate(0)]
    return kept[0] if len(kept) == 1 else SeqStmt(kept)


def _is_nothing(stmt):
    return isinstance(stmt, Evaluate) and getattr(stmt.value, "value", None) == 0


def _check_layouts(func):
    for buffer in _buffers(func):
        layout = buffer.layout
        if layout is not None and not isinstance(layout, str) and not layout.is_trivial():
            raise PassError(
                f"tirx.LowerTIRx: the layout of buffer `{buffer.name}` says which thread holds what, or exchanges places of memory; "
                "buffers that lie row by row become flat"
            )


def _buffers(func):
    yield from (buffer for buffer in func.buffers if buffer is not None)
    for stmt in _walk.walk(func.body):
        if isinstance(stmt, (AllocBuffer, DeclBuffer)):
            yield stmt.buffer


def _flat(func):
    flat = Pass(_core.make_pass("tirx.transform.FlattenBuffer", {}))
    return flat(IRModule({"main": func}))["main"]


class _Launch:
    """What is launched, and what the scope ids are in its terms."""

    def __init__(self, definitions):
        self.definitions = definitions
        self.extents = {}
        for one in definitions:
            if one.extents is not None:
                self.extents.setdefault(one.scope, list(one.extents))
        self.preferred = next((list(one.preferred_extents) for one in definitions if one.preferred_extents), None)
        self.axes = self._axes()
        tags = _ORDER_IN_CLUSTERS if any(tag.startswith("cluster") for tag in self.axes) else _ORDER
        self.loops = [(tag, Var(tag.replace(".", "_"), "int32"), self.axes[tag]) for tag in tags if tag in self.axes]
        self.vars = {tag: var for tag, var, _ in self.loops}
        self.warp = Var("warp_id_in_cta", "int32")

    @property
    def threads(self):
        """How many threads a block has."""
        return prod(self.axes[tag] for tag in self.axes if tag.startswith("threadIdx"))

    def _count(self, *bindings):
        """How many units several bindings count together, where all are defined by numbers."""
        lists = [self.extents.get(binding) for binding in bindings]
        numbers = [getattr(extent, "value", None) for one in lists for extent in one or [None]]
        return None if None in numbers else prod(numbers)

    def _axes(self):
        """How far each axis of threads runs."""
        blocks = self.extents.get(_BLOCKS)
        within, clusters = self.extents.get(_IN_CLUSTER), self.extents.get(_CLUSTERS)
        if blocks is None and clusters is not None:
            # A cluster of fewer axes than the grid has one place along the others, and the other way round.
            pairs = zip_longest(clusters, within or (), fillvalue=const(1, "int32"))
            blocks = [_api.prim.simplify(count * inside) for count, inside in pairs]
        axes = dict(zip((f"blockIdx.{part}" for part in _PARTS), blocks or ()))
        axes |= zip((f"clusterCtaIdx.{part}" for part in _PARTS), within or ())
        axes |= zip((f"preferredClusterCtaIdx.{part}" for part in _PARTS), self.preferred or ())
        return axes | self._threads()

    def _threads(self):
        if self._count(_THREADS) is not None:
            return dict(zip((f"threadIdx.{part}" for part in _PARTS), (e.value for e in self.extents[_THREADS])))
        for bindings in ((_WARPS, _LANES), (_GROUPS, _THREADS_OF_GROUP), (_GROUPS, _WARPS_OF_GROUP, _LANES)):
            count = self._count(*bindings)
            if count is not None:
                return {"threadIdx.x": count}
        raise InternalError(
            "the kernel has no thread launch parameters: say how many threads a block has, as by T.thread_id([128]), "
            "or by T.warp_id([4]) and T.lane_id([32])"
        )

    def _linear(self):
        """The number of a thread in its block."""
        number, step = None, 1
        for part in _PARTS:
            var = self.vars.get(f"threadIdx.{part}")
            if var is not None:
                number = var if number is None else number + var * step
                step *= self.axes[f"threadIdx.{part}"]
        return number

    def _values(self, one):
        """What the scope ids of a definition are."""
        ids = list(one.def_ids)
        if one.scope == _BLOCKS:
            return [self.vars[f"blockIdx.{part}"] for part, _ in zip(_PARTS, ids)]
        if one.scope == _IN_CLUSTER:
            return [self.vars[f"clusterCtaIdx.{part}"] for part, _ in zip(_PARTS, ids)]
        if one.scope == _CLUSTERS:
            return [call_intrin("int32", "tirx.cuda.mov_sreg", 32, f"clusterid.{part}") for part, _ in zip(_PARTS, ids)]
        if one.scope == _PAIR:
            return [self._in_cluster() % 2]
        if one.scope == _THREADS and len(ids) > 1:
            return [self.vars[f"threadIdx.{part}"] for part, _ in zip(_PARTS, ids)]
        linear = self._linear()
        whole = {
            _GROUPS: self.warp // 4, _WARPS: self.warp, _WARPS_OF_GROUP: self.warp % 4,
            _LANES: linear % _WARP, _THREADS: linear, _THREADS_OF_GROUP: linear % (4 * _WARP),
        }[one.scope]  # fmt: skip
        return _parted(whole, one)

    def _in_cluster(self):
        number, step = const(0, "int32"), 1
        for part in _PARTS:
            tag = f"clusterCtaIdx.{part}"
            if tag in self.vars:
                number, step = number + self.vars[tag] * step, step * self.axes[tag]
        return _api.prim.simplify(number)

    def numbers(self):
        """The statements that give the scope ids their values, in front of all others."""
        shuffle = tvm_warp_shuffle(const(_ALL_LANES, "uint32"), self._linear() // _WARP, 0, _WARP, _WARP)
        made, unnamed = [Bind(self.warp, shuffle)], []
        for one in self.definitions:
            for var, value in zip(one.def_ids, self._values(one)):
                made.append(Bind(var, value if var.dtype == "int32" else Cast(var.dtype, value)))
                if var.name in _UNNAMED:
                    unnamed.append(Evaluate(var))
        return [*made, *unnamed]

    def around(self, body):
        """The loops over threads around a statement."""
        for tag, var, extent in reversed(self.loops):
            body = For(var, 0, extent, ForKind.THREAD_BINDING, body, tag)
        return body


def _parted(whole, one):
    """A number as those along the axes of a definition, of which the first runs fastest."""
    extents = list(one.extents or ())
    if len(extents) < 2:
        return [whole]
    parts = []
    for extent in extents[:-1]:
        parts.append(whole % extent)
        whole = whole // extent
    return [*parts, whole]


class _Tiles:
    """Puts what implementations make in the place of operations on tiles."""

    def __init__(self, launch, conditions, target):
        self.launch, self.conditions, self.target = launch, conditions, target
        self.shared_state, self.allocated, self.first_of_device, self.first_of_host = {}, [], [], []

    def lowered(self, stmt, threads):
        """A statement that these threads execute, without operations on tiles and scope ids."""
        return _walk.rebuilt(stmt, lambda part: self._changed(part, threads))

    def _changed(self, stmt, threads):
        if isinstance(stmt, ScopeIdDefStmt):
            return Evaluate(0)
        if isinstance(stmt, TilePrimitiveCall):
            return self._implemented(stmt, threads)
        if isinstance(stmt, SeqStmt):
            return _sequence([self.lowered(part, threads) for part in stmt.seq])
        if isinstance(stmt, IfThenElse):
            then_case = self.lowered(stmt.then_case, self.conditions.where(threads, stmt.condition))
            else_case = None if stmt.else_case is None else self.lowered(stmt.else_case, threads)
            return IfThenElse(stmt.condition, then_case, else_case)
        return None

    def _implemented(self, call, threads):
        inter, intra = threads.sides(call.scope.name)
        axes = {tag: ThreadAxis((0, extent), var, tag) for tag, var, extent in self.launch.loops}
        told = {"inter": inter, "intra": intra, "scope_kind": call.scope.name, "shared_state": self.shared_state}
        context = DispatchContext(self.target, call.scope, axes, **told)
        made = run_dispatch(call, context)
        if not isinstance(made, PrimFunc) or len(made.params):
            raise PassError(f"tirx.LowerTIRx: an implementation of {call.op} gives a kernel without parameters, not {made!r}")
        self.allocated += context.allocated
        self.first_of_device += context.first_of_device
        self.first_of_host += context.first_of_host
        return self.lowered(_api.tirx.FreshKernel(made).body, threads)


__all__ = ["LowerTIRx"]
