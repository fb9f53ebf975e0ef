"""The rule for blocks that name their own."""

from ._blocks import annotation
from .schedule_rule import _Copied


class ApplyCustomRule(_Copied):
    """Calls the function that a block names in its hint ``schedule_rule``.

    It is looked for as ``s_tir.meta_schedule.KEY.NAME`` for each key of the target, takes a schedule and a block, and gives schedules.
    """

    def __init__(self):
        self._made_of()

    @property
    def target_(self):
        """The target of the task."""
        return self._context.target if self._context else None

    def apply(self, sch, block):
        """What the function gives. A ValueError where there is none of that name."""
        from ....runtime import get_global_func

        name = annotation(sch, block, "schedule_rule")
        if name is None or str(name) == "None":
            return [sch]
        keys = list(self.target_.keys) if self.target_ is not None else []
        for key in keys:
            found = get_global_func(f"s_tir.meta_schedule.{key}.{name}", allow_missing=True)
            if found is not None:
                return list(found(sch, block))
        raise ValueError(f"there is no function s_tir.meta_schedule.KEY.{name} for the keys {keys}: register it with register_global_func")


__all__ = ["ApplyCustomRule"]
