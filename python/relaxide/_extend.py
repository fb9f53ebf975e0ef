"""Methods written in Python for classes of the extension module.

Values come out of the extension as instances of its own classes. What needs numpy, or is made of other methods, is added
to those classes here, so that no wrapper object stands between a result and its user.
"""

_OF_EVERY_CLASS = {"__dict__", "__doc__", "__firstlineno__", "__module__", "__qualname__", "__static_attributes__", "__weakref__"}


def methods_of(cls):
    """A class decorator that gives what the body defines to ``cls``, and stands for ``cls`` itself afterwards."""

    def give(body):
        for name, value in vars(body).items():
            if name not in _OF_EVERY_CLASS:
                setattr(cls, name, value)
        return cls

    return give
