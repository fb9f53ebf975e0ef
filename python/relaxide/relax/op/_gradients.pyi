from collections.abc import Callable, Sequence
from typing import Any

from ...ir.expr import Call, Expr, Var
from ..block_builder import BlockBuilder

_Gradient = Callable[[Var, Call, Expr, BlockBuilder], Sequence[Expr | None]]

def register_gradient(op_name: str, fgradient: _Gradient | None = None, level: int = 10) -> Any: ...
