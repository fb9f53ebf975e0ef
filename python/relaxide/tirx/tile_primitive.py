"""Operations of several threads on tiles: nodes of programs, which :func:`~relaxide.tirx.transform.LowerTIRx` makes statements of threads."""

import inspect

from ..ffi import register_object
from ..ir import _api
from ..ir.base import Node
from ..ir.prim import FloatImm
from .exec_scope import ExecScope
from .stmt import Stmt


@register_object("tirx.LambdaExpr")
class LambdaExpr(Node):
    """An expression over the indices of an element: ``LambdaExpr(lambda i, j: i < j)``. Its variables are 32-bit integers."""

    def __init__(self, f_pred):
        from ..ir.expr import Var

        variables = [Var(name, "int32") for name in inspect.signature(f_pred).parameters]
        self.__init_handle_by_constructor__(_api.tirx.LambdaExpr, variables, f_pred(*variables))

    def apply(self, indices):
        """The expression at an element."""
        return _api.tirx.LambdaExprApply(self, list(indices))


@register_object("tirx.ScopeIdDefStmt")
class ScopeIdDefStmt(Stmt):
    """Numbers for the units of a scope, for the statements behind it in the same sequence; ``getattr(stmt, "def")`` is the definition."""

    def __init__(self, def_, span=None):
        self.__init_handle_by_constructor__(_api.tirx.ScopeIdDefStmt, def_)


@register_object("tirx.TilePrimitiveCall")
class TilePrimitiveCall(Stmt):
    """An operation of the threads of a scope on tiles.

    Parameters
    ----------
    args :
        Regions of buffers, scalars, and what else the primitive takes. Floats become literals.
    op : str
        Its name: ``"tirx.tile.copy"``.
    workspace : dict of str to Buffer
        Buffers that it may use.
    config : dict
        Hints for the implementation.
    dispatch : str
        The implementation that is asked for.
    scope : ExecScope
        Which threads do it together; a thread alone by default.
    """

    def __init__(self, *args, op=None, workspace=None, config=None, dispatch=None, scope=None):
        if op is None:
            raise ValueError("a tile primitive has a name: op='tirx.tile.copy'")
        args = [FloatImm("float32", one) if isinstance(one, float) else one for one in args]
        scope = ExecScope("thread") if scope is None else scope
        name = getattr(op, "name", op)
        self.__init_handle_by_constructor__(_api.tirx.TilePrimitiveCall, name, args, dict(workspace or {}), dict(config or {}), dispatch, scope)

    def replace(self, **changes):
        """The same call with other fields."""
        unknown = set(changes) - {"op", "args", "workspace", "config", "dispatch", "scope"}
        if unknown:
            raise TypeError(f"Unknown field(s) for TilePrimitiveCall.replace: {sorted(unknown)}")
        fields = {name: getattr(self, name) for name in ("op", "workspace", "config", "dispatch", "scope")} | changes
        return TilePrimitiveCall(*fields.pop("args", self.args), **fields)

    def with_workspace(self, workspace):
        """The same call with other buffers to use."""
        return self.replace(workspace=workspace)


class DispatchContext:
    """What an implementation of a tile primitive is told of the place of a call.

    ``target`` is the target, ``exec_scope`` and ``scope_kind`` are the scope of the call, ``launch_params`` the axes of threads by name.
    ``inter`` says of the axes that count units of the scope, and ``intra`` of those inside of one, which places execute the call: how
    many, from which on, and by which step where that is not one. Where one lane is chosen by an instruction, its number is that choice.
    ``shared_state`` is kept from call to call of one kernel.
    """

    def __init__(self, target, exec_scope, launch_params, var_range_map=None, *, inter=None, intra=None, scope_kind="", shared_state=None):
        self.target, self.exec_scope, self.launch_params = target, exec_scope, dict(launch_params)
        self.var_range_map = dict(var_range_map or {})
        self.inter, self.intra, self.scope_kind = dict(inter or {}), dict(intra or {}), scope_kind
        self.shared_state = {} if shared_state is None else shared_state
        self.allocated, self.first_of_device, self.first_of_host = [], [], []

    def add_alloc_buffer(self, buffer):
        """Have a buffer allocated where the device part begins."""
        self.allocated.append(buffer)

    def add_init_stmt(self, stmt, host=False):
        """Have a statement executed where the device part begins, or in front of it."""
        (self.first_of_host if host else self.first_of_device).append(stmt)

    def cache_get(self, key):
        """What an earlier call of the kernel has kept under a name; ``None`` where nothing is."""
        return self.shared_state.get(key)

    def cache_set(self, key, value):
        """Keep something for later calls of the kernel."""
        self.shared_state[key] = value

    def is_target(self, kind):
        """Whether the target is of a kind."""
        return getattr(getattr(self.target, "kind", None), "name", None) == kind

    def is_cuda(self):
        """Whether the target is of the kind ``cuda``."""
        return self.is_target("cuda")

    def is_trn(self):
        """Whether the target is of the kind ``trn``."""
        return self.is_target("trn")

    def is_cluster(self):
        """Whether a cluster does it together."""
        return self.scope_kind == "cluster"

    def is_cta(self):
        """Whether a block does it together."""
        return self.scope_kind == "cta"

    def is_warpgroup(self):
        """Whether a warp group does it together."""
        return self.scope_kind == "warpgroup"

    def is_warp(self):
        """Whether a warp does it together."""
        return self.scope_kind == "warp"

    def is_thread(self):
        """Whether a thread does it alone."""
        return self.scope_kind == "thread"
