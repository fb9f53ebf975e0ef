"""The builder, its frames, and the names that are given to what was built."""

import threading
from contextlib import contextmanager

_open = threading.local()


def _stack():
    """The builders that are open in this thread."""
    if not hasattr(_open, "builders"):
        _open.builders = []
    return _open.builders


class IRBuilderFrame:
    """A part of a program that is being written: what is called inside of its ``with`` block goes into it.

    A block that an error leaves is forgotten, and so is what was written into it.
    """

    def __init__(self):
        self._callbacks = []

    def __enter__(self):
        self._builder = IRBuilder.current()
        self._builder.frames.append(self)
        self.enter()
        return self._given()

    def __exit__(self, kind, value, traceback):
        frames = self._builder.frames
        if kind is not None:
            del frames[frames.index(self) :]
            self.abandon()
            return
        for callback in reversed(self._callbacks):
            callback()
        frames.pop()
        self.exit()

    def enter(self):
        """What happens at the beginning of the block."""

    def exit(self):
        """What happens at its end: it goes into the frame around it."""

    def abandon(self):
        """What happens where an error leaves the block."""

    def _given(self):
        """What ``as`` names."""
        return self

    def add_callback(self, callback):
        """Call a function without arguments at the end of the block, in front of what the frame itself does; the last one first."""
        self._callbacks.append(callback)


class IRBuilder:
    """Holds the open frames, and in the end the program: ``get()``.

    Builders can be open inside of each other; functions that write use the innermost, :meth:`current`.
    """

    def __init__(self):
        self.frames = []
        self._result = None
        self._has_result = False
        self._names = {}
        self._spans = []

    def __enter__(self):
        _stack().append(self)
        return self

    def __exit__(self, kind, value, traceback):
        _stack().remove(self)

    @staticmethod
    def current():
        """The innermost open builder; a ValueError where none is open."""
        if not _stack():
            raise ValueError("no IRBuilder is open here: write inside of `with IRBuilder() as builder:`")
        return _stack()[-1]

    @staticmethod
    def is_in_scope():
        """Whether a builder is open in this thread."""
        return bool(_stack())

    def get(self):
        """What was built: a module, a function, or a statement; a ValueError where nothing was."""
        if not self._has_result:
            raise ValueError("nothing has been built: no frame of this builder was finished")
        return self._result

    def find(self, kind):
        """The innermost open frame of a class; ``None`` where there is none."""
        return next((frame for frame in reversed(self.frames) if isinstance(frame, kind)), None)

    def finish(self, result):
        """Take what the outermost frame made; a ValueError where something was made before."""
        if self._has_result:
            raise ValueError("a builder makes one program: open another IRBuilder for the next")
        self._result, self._has_result = result, True

    @contextmanager
    def with_source_span(self, span):
        """A scope in which what is written is said to stand at a place (:class:`relaxide.ir.Span`) of a source.

        Relax variables keep it; statements of kernels have no places here.
        """
        self._spans.append(span)
        try:
            yield
        finally:
            self._spans.pop()

    @staticmethod
    def name(s, v):
        """Give a name to what was built, which is returned. It is seen when the function around it is finished."""
        IRBuilder.current()._names[v] = s
        return v

    @staticmethod
    def name_many(s, vs):
        """Names for as many values; a ValueError where their numbers differ."""
        if len(s) != len(vs):
            raise ValueError(f"{len(s)} names are given to {len(vs)} values")
        return [IRBuilder.name(name, value) for name, value in zip(s, vs)]


def frame_of(kind, what):
    """The innermost open frame of a class; a ValueError that says what needs it where there is none."""
    found = IRBuilder.current().find(kind)
    if found is None:
        raise ValueError(f"{what} stands in no {kind.__name__}: open the `with` block of one")
    return found


__all__ = ["IRBuilder", "IRBuilderFrame"]
