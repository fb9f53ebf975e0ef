"""The base of rules, and the rules for kinds of targets."""

from ....ir.utils import Outer


class ScheduleRule:
    """The base of rules."""

    _context = None

    def _initialize_with_tune_context(self, context):
        self._context = context

    def apply(self, sch, block):
        """The schedules that a rule makes of one at a block; the one alone where it does not apply."""
        raise NotImplementedError(f"{type(self).__name__}.apply")

    def clone(self):
        """The same rule, for another task."""
        raise NotImplementedError(f"{type(self).__name__}.clone")

    @staticmethod
    def create(kind):
        """The rules for a kind of target: ``"llvm"`` or ``"cuda"``."""
        from ._kinds import rules_for

        return rules_for(kind)


class PyScheduleRule(Outer, ScheduleRule):
    """The base of rules of one's own."""


class _Copied(ScheduleRule):
    """Rules that are made anew from the values they were made of."""

    def _made_of(self, **values):
        self._values = values
        for name, value in values.items():
            setattr(self, name, value)

    def clone(self):
        """The same rule, for another task."""
        return type(self)(**self._values)


create = ScheduleRule.create

__all__ = ["PyScheduleRule", "ScheduleRule", "create"]
