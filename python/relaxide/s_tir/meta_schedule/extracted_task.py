"""A kernel of a program that is tuned for itself."""


class ExtractedTask:
    """A task: its name, the module of the call, the target, the kernels that may serve, and how often it is called (``weight``)."""

    def __init__(self, task_name, mod, target, dispatched, weight):
        self.task_name, self.mod, self.target = task_name, mod, target
        self.dispatched, self.weight = list(dispatched), int(weight)


__all__ = ["ExtractedTask"]
