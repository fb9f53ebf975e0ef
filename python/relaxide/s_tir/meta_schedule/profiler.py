"""How long the parts of tuning take."""

import time
from contextlib import contextmanager
from contextvars import ContextVar

_CURRENT = ContextVar("profiler", default=None)


class Profiler:
    """Adds up the seconds of named parts while it is open: ``with Profiler() as profiler: …``; ``Total`` is the whole."""

    def __init__(self):
        self._seconds, self._begin, self._token = {}, None, None

    def get(self):
        """Seconds by name."""
        return dict(self._seconds)

    def table(self):
        """A table of the parts, in the order in which they were first met."""
        total = self._seconds.get("Total", sum(self._seconds.values())) or 1.0
        rows = [(name, f"{seconds:.4f}", f"{seconds / total:.2%}") for name, seconds in self._seconds.items()]
        rows = [("Name", "Time (s)", "Percentage"), *rows]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        return "\n".join(" | ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)

    def __enter__(self):
        self._begin, self._token = time.perf_counter(), _CURRENT.set(self)
        return self

    def __exit__(self, kind, value, traceback):
        self._seconds["Total"] = self._seconds.get("Total", 0.0) + time.perf_counter() - self._begin
        _CURRENT.reset(self._token)

    @staticmethod
    def current():
        """The innermost that is open, or ``None``."""
        return _CURRENT.get()

    @staticmethod
    @contextmanager
    def timeit(name):
        """Count the seconds of a block under a name, where a profiler is open."""
        profiler, begin = _CURRENT.get(), time.perf_counter()
        try:
            yield
        finally:
            if profiler is not None:
                profiler._seconds[name] = profiler._seconds.get(name, 0.0) + time.perf_counter() - begin


__all__ = ["Profiler"]
