"""The base of rules for GPUs."""

from ..base import ScheduleRule


class GPUScheduleRule(ScheduleRule):
    """A rule that is about GPUs only."""

    def is_target_available(self, target):
        """Whether the target is a GPU."""
        return super().is_target_available(target) and "gpu" in target.keys


__all__ = ["GPUScheduleRule"]
