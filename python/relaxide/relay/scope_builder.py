"""A function's body, statement by statement."""

from .expr import If, Let, Var, _operand


class ScopeBuilder:
    """Collects bindings, branches and the result of a scope::

        sb = relay.ScopeBuilder()
        with sb.if_scope(cond):
            sb.ret(a)
        with sb.else_scope():
            sb.ret(b)
        body = sb.get()
    """

    def __init__(self):
        self._bindings = [[]]
        self._results = [None]

    def let(self, var, value):
        """Bind a value to a name or variable, which is given back."""
        if isinstance(var, str):
            var = Var(var)
        self._bindings[-1].append((var, _operand(value)))
        return var

    def ret(self, value):
        """The result of the scope."""
        if self._results[-1] is not None:
            raise RuntimeError("ret is already called in this scope.")
        self._results[-1] = _operand(value)

    def _close(self):
        bindings, result = self._bindings.pop(), self._results.pop()
        if result is None:
            raise RuntimeError("a scope ends without ret")
        for var, value in reversed(bindings):
            result = Let(var, value, result)
        return result

    def if_scope(self, cond):
        """The branch where a condition holds."""
        return _Branch(self, lambda then: self._results.__setitem__(-1, If(cond, then, then)))

    def else_scope(self):
        """The branch where it does not."""
        choice = self._results[-1]
        if not isinstance(choice, If):
            raise RuntimeError("else_scope must follow if_scope")
        return _Branch(self, lambda other: self._results.__setitem__(-1, If(choice.cond, choice.then, other)))

    def get(self):
        """The scope as an expression."""
        return self._close()


class _Branch:
    def __init__(self, builder, done):
        self._builder, self._done = builder, done

    def __enter__(self):
        self._builder._bindings.append([])
        self._builder._results.append(None)

    def __exit__(self, kind, *_):
        if kind is None:
            self._done(self._builder._close())


__all__ = ["ScopeBuilder"]
