"""Operations of several threads on tiles: nodes of programs, of which no code is made yet."""

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
