"""Classes of a user's that stand in the place of the compiler's."""


def derived_object(cls):
    """A class decorator for what extends a ``Py…`` class, such as ``meta_schedule.PyBuilder``.

    The class itself is given back: its objects are those of the compiler's class, and its methods are called. A class that is decorated
    is not extended further, which is a TypeError.
    """
    for base in cls.__mro__[1:]:
        if "_is_derived" in vars(base):
            raise TypeError(f"`{base.__name__}` is decorated, and classes of it are not allowed: refine `{base.__name__}._cls`")
    cls._is_derived = True
    cls._cls = cls
    return cls


class Outer:
    """Mixed into ``Py…`` classes: where TVM keeps two objects, one of Python and one around it, there is one here."""

    def _outer(self):
        """The object that the compiler sees: this one."""
        return self


__all__ = ["derived_object"]
