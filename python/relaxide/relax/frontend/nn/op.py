"""Operators on tensors of modules; each binds its result to a variable that ``name`` suggests."""

from . import _basic_ops, _calls, _nn_ops, _sampling
from ._basic_ops import *  # noqa: F403
from ._calls import *  # noqa: F403
from ._nn_ops import *  # noqa: F403
from ._sampling import *  # noqa: F403

__all__ = [*_basic_ops.__all__, *_calls.__all__, *_nn_ops.__all__, *_sampling.__all__]
