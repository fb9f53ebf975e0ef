"""The pass that applies rules."""

from ....ir.transform import module_pass
from ....target import Target
from ....tirx import PrimFunc
from ...schedule import Schedule, ScheduleError


@module_pass(opt_level=0, name="ApplyDefaultSchedule")
class ApplyDefaultSchedule:
    """Schedules each kernel of a module by the first of the rules that is about it and whose steps can all be executed.

    The target is the kernel's attribute ``target``, else the current one; a ValueError where there is neither. A kernel that was scheduled
    gets the attribute ``tirx.is_scheduled``, and one that has it is left alone.
    """

    def __init__(self, *rules):
        self.rules = list(rules)

    def transform_module(self, mod, ctx):
        """The module with its kernels scheduled."""
        scheduled = {}
        for var, func in mod.functions.items():
            if not isinstance(func, PrimFunc) or func.attrs.get("tirx.is_scheduled"):
                continue
            made = self._schedule(func, func.attrs.get("target") or Target.current(allow_none=False))
            if made is not None:
                scheduled[var] = made.mod["main"].with_attr("tirx.is_scheduled", True)
        for var, func in scheduled.items():
            mod[var] = func
        return mod

    def _schedule(self, func, target):
        target = Target(target) if isinstance(target, str) else target
        for rule in self.rules:
            try:
                made = rule.apply(func, target, False)
            except ScheduleError:
                # A step of the rule cannot be executed on this kernel.
                continue
            if made is not None:
                return made if isinstance(made, Schedule) else made[0]
        return None


__all__ = ["ApplyDefaultSchedule"]
