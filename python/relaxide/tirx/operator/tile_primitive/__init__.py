"""Operations on tiles as calls, and the table of what implements them on which kind of target."""

from ...tile_primitive import DispatchContext, TilePrimitiveCall
from . import dispatcher, ops
from .dispatcher import fail, list_registered_schedules, predicate, register_dispatch
from .ops import *  # noqa: F403
from .ops import get_tirx_op

__all__ = ["DispatchContext", "TilePrimitiveCall", "dispatcher", "fail", "get_tirx_op", "list_registered_schedules", "ops", "predicate"]
__all__ += ["register_dispatch", *ops.__all__]
