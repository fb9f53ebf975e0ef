"""Rules that compute blocks where their results are used."""

from ....tirx import IfThenElse, Var
from ....tirx._walk import operands, scalars, walk
from ....ir.prim import PrimCall, Select
from ._blocks import REFUSED, annotation, is_root, is_spatial_kernel, kind_of, number, realize_of
from .schedule_rule import _Copied


class AutoInline(_Copied):
    """Computes a block where its result is used, or where its input is made.

    Parameters
    ----------
    into_producer, into_consumer : bool
        Which of the two is tried.
    inline_const_tensor : bool
        Whether blocks that read nothing are computed where they are used.
    disallow_if_then_else : bool
        Whether blocks with conditions are left.
    require_injective, require_ordered : bool
        Whether a block must read each element once, and in the order in which it writes.
    disallow_op : list of str, optional
        Intrinsics whose blocks are left, ``"tirx.exp"`` for instance.
    """

    def __init__(
        self, into_producer, into_consumer, inline_const_tensor, disallow_if_then_else, require_injective, require_ordered, disallow_op=None
    ):
        self._made_of(
            into_producer=into_producer,
            into_consumer=into_consumer,
            inline_const_tensor=inline_const_tensor,
            disallow_if_then_else=disallow_if_then_else,
            require_injective=require_injective,
            require_ordered=require_ordered,
            disallow_op=disallow_op,
        )

    def apply(self, sch, block):
        """The schedule with the block inlined, where that is wanted and legal."""
        node = sch.get(block)
        if is_root(sch, block) or len(node.writes) != 1 or any(kind_of(axis) != "S" for axis in node.iter_vars):
            return [sch]
        if not node.reads:
            if self.inline_const_tensor:
                _try(sch, block, ("compute_inline",))
            return [sch]
        if not is_spatial_kernel(sch, block) and not self._is_wanted(sch, block, node):
            return [sch]
        if str(annotation(sch, block, "meta_schedule.inline_rule") or "") == "disable":
            return [sch]
        steps = []
        if self.into_consumer and sch.copy().get_consumers(block):
            steps.append("compute_inline")
        if self.into_producer and len(sch.copy().get_producers(block)) == 1:
            steps.append("reverse_compute_inline")
        _try(sch, block, steps)
        return [sch]

    def _is_wanted(self, sch, block, node):
        if self.disallow_op and set(map(str, self.disallow_op)) & set(_intrinsics(node)):
            return False
        if self.disallow_if_then_else and _has_conditions(realize_of(sch, block)):
            return False
        if self.require_injective or self.require_ordered:
            for region in node.reads:
                injective, ordered = _pattern(node, region)
                if self.require_injective and not injective or self.require_ordered and not ordered:
                    return False
        return True


def _try(sch, block, steps):
    for step in steps:
        try:
            getattr(sch.copy(), step)(block)
        except REFUSED:
            continue
        getattr(sch, step)(block)
        return


def _everything(stmt):
    pending = [scalar for part in walk(stmt) for scalar in scalars(part)]
    while pending:
        one = pending.pop()
        yield one
        pending.extend(operands(one))


def _intrinsics(block):
    for one in _everything(block.body):
        if isinstance(one, PrimCall):
            name = str(getattr(one.op, "name", one.op))
            yield name
            yield name.replace("tir.", "tirx.", 1)


def _has_conditions(realize):
    if number(realize.predicate) != 1:
        return True
    if any(isinstance(part, IfThenElse) for part in walk(realize.block.body)):
        return True
    return any(isinstance(one, Select) or isinstance(one, PrimCall) and "if_then_else" in str(one.op) for one in _everything(realize.block.body))


def _pattern(block, region):
    """Whether a read takes each element at most once, and in the order of the block's axes."""
    axes = [axis.var for axis in block.iter_vars]
    places = []
    for dim in region.region:
        if number(dim.extent) != 1:
            return False, False
        if isinstance(dim.min, Var):
            places += [index for index, var in enumerate(axes) if var.same_as(dim.min)]
        elif number(dim.min) is None:
            return False, False
    long = {index for index, axis in enumerate(block.iter_vars) if number(axis.extent) != 1}
    return len(set(places)) == len(places) and long <= set(places), places == sorted(places)


class InlineConstantScalars(_Copied):
    """Computes a block that makes one constant where it is used."""

    def __init__(self):
        self._made_of()

    def apply(self, sch, block):
        """The schedule with the constant inlined."""
        node = sch.get(block)
        if not is_root(sch, block) and not node.reads and len(node.writes) == 1:
            if all(number(dim) == 1 for dim in node.writes[0].buffer.shape):
                _try(sch, block, ("compute_inline",))
        return [sch]


__all__ = ["AutoInline", "InlineConstantScalars"]
