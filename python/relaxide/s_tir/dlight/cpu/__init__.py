"""Rules for processors."""

from .base import CPUScheduleRule
from .gemv import GEMV

__all__ = ["CPUScheduleRule", "GEMV"]
