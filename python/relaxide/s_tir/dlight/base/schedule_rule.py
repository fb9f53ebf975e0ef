"""The base of rules."""


class ScheduleRule:
    """Schedules kernels of one kind for targets of one kind."""

    def apply(self, func, target, tunable):
        """The schedule of a kernel for a target, a list of schedules where ``tunable`` allows several, or ``None`` where the rule is not
        about such a kernel."""
        raise NotImplementedError(f"{type(self).__name__} has no method apply")

    @staticmethod
    def from_callable(name):
        """A decorator that makes a rule of a function of kernel, target and ``tunable``; ``name`` is that of the rule's class."""

        def decorate(function):
            def apply(self, func, target, tunable):
                return function(func, target, tunable)

            return type(name, (ScheduleRule,), {"apply": apply, "__doc__": function.__doc__})()

        return decorate

    def is_target_available(self, target):
        """Whether the rule is about such a target."""
        return True


__all__ = ["ScheduleRule"]
