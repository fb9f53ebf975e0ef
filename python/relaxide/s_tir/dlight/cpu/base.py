"""The base of rules for processors."""

from ..base import ScheduleRule


class CPUScheduleRule(ScheduleRule):
    """A rule that is about processors only."""

    def is_target_available(self, target):
        """Whether the target is a processor."""
        return super().is_target_available(target) and target.kind.name == "llvm"


__all__ = ["CPUScheduleRule"]
