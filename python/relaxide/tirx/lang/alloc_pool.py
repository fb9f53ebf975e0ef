"""See :mod:`relaxide.tirx.cuda.lang.alloc_pool`."""

from ..cuda.lang.alloc_pool import *  # noqa: F403
