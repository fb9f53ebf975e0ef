"""Fixtures of pytest that are written as values."""

import copy
import functools
import itertools

_COUNTER = itertools.count()


def parameter(*values, ids=None, by_dict=None):
    """A fixture that has each of some values in turn, under the name that it is assigned to.

    Parameters
    ----------
    values
        The values.
    ids : list of str, optional
        What they are called in reports.
    by_dict : dict of str to value, optional
        Names and values, instead of both.
    """
    import pytest

    if by_dict is not None:
        if values or ids is not None:
            raise RuntimeError("by_dict has names and values; give neither beside it")
        ids, values = list(by_dict), list(by_dict.values())

    @pytest.fixture(params=list(values), ids=ids)
    def as_fixture(*_cls, request):
        return request.param

    return as_fixture


def parameters(*value_sets, ids=None):
    """Several fixtures whose values go together: one tuple for each case, one fixture for each place in it.

    Examples
    --------
    ``shape, dtype = parameters(((3,), "float32"), ((4, 5), "int8"))`` runs each test that takes ``shape``, ``dtype`` or both
    twice.
    """
    import pytest

    count = len(value_sets[0]) if value_sets else 0
    for values in value_sets:
        if len(values) != count:
            raise ValueError(f"a case has {len(values)} values, another {count}")
    group = next(_COUNTER)

    def one(at):
        @pytest.fixture(params=[Case(group, number, values[at]) for number, values in enumerate(value_sets)], ids=ids)
        def as_fixture(*_cls, request):
            # The plugin leaves such combinations out; without it they are skipped here.
            cases = request.node.__dict__.setdefault("_relaxide_cases", {})
            if cases.setdefault(group, request.param.number) != request.param.number:
                pytest.skip("the values are of different cases")
            return request.param.value

        return as_fixture

    return [one(at) for at in range(count)]


class Case:
    """A value of one of several fixtures that go together."""

    def __init__(self, group, number, value):
        self.group, self.number, self.value = group, number, value

    def __repr__(self):
        return repr(self.value)


def go_together(params):
    """Whether the values that a test is called with are of one case, where fixtures go together: for a hook of pytest that
    leaves the other combinations out."""
    chosen = {}
    for value in params.values():
        if isinstance(value, Case) and chosen.setdefault(value.group, value.number) != value.number:
            return False
    return True


def fixture(func=None, *, cache_return_value=False):
    """A fixture of pytest; with ``cache_return_value`` its result is made once for each set of arguments, and tests get copies."""
    import pytest

    if func is None:
        return functools.partial(fixture, cache_return_value=cache_return_value)
    if not cache_return_value:
        return pytest.fixture(func)
    made = {}

    @functools.wraps(func)
    def cached(*args, **kwargs):
        key = (tuple(map(repr, args)), tuple(sorted((name, repr(value)) for name, value in kwargs.items())))
        if key not in made:
            made[key] = func(*args, **kwargs)
        try:
            return copy.deepcopy(made[key])
        except (TypeError, NotImplementedError) as error:
            raise TypeError(f"{func.__name__} gives what cannot be copied for each test: {error}") from error

    return pytest.fixture(cached)
