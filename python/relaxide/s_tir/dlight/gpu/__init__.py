"""Rules for GPUs: blocks and threads."""

from .base import GPUScheduleRule
from .fallback import Fallback
from .general_reduction import GeneralReduction
from .transpose import Transpose

__all__ = ["Fallback", "GPUScheduleRule", "GeneralReduction", "Transpose"]
