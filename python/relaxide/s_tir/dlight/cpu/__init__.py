"""Rules for processors."""

from .base import CPUScheduleRule
from .gemv import GEMV
from .reduction import Reduction

__all__ = ["CPUScheduleRule", "GEMV", "Reduction"]
