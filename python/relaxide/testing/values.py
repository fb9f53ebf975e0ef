"""Comparisons of values and of expressions."""

import itertools

import numpy as np

_TRUE = {"y", "yes", "t", "true", "on", "1"}
_FALSE = {"n", "no", "f", "false", "off", "0"}


def _array(value):
    if hasattr(value, "numpy") and not isinstance(value, np.ndarray):
        value = value.numpy()
    return np.asanyarray(value)


def assert_allclose(actual, desired, rtol=1e-7, atol=1e-7, verbose=True):
    """Fail unless two arrays have one shape and their elements differ by at most ``atol + rtol * |desired|``.

    Parameters
    ----------
    actual, desired : Tensor, numpy.ndarray or number
        What came and what was wanted.
    rtol, atol : float
        What is allowed, in relation to what was wanted and at all.
    verbose : bool
        Whether the message shows the arrays.
    """
    actual, desired = _array(actual), _array(desired)
    np.testing.assert_allclose(actual.shape, desired.shape)
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol, verbose=verbose)


def strtobool(val):
    """1 for a text that says yes (``y``, ``yes``, ``t``, ``true``, ``on``, ``1``), 0 for one that says no.

    Raises
    ------
    ValueError
        For any other text.
    """
    word = val.lower()
    if word in _TRUE:
        return 1
    if word in _FALSE:
        return 0
    raise ValueError(f"invalid bool {val!r}; known are {sorted(_TRUE)} and {sorted(_FALSE)}")


def check_numerical_grads(
    function, input_values, grad_values, function_value=None, delta=1e-3, atol=1e-2, rtol=0.1
):
    """Fail unless gradients agree with differences of the function's values.

    Each element of each input is moved by ``delta`` and by half of it, in both directions; where the two quotients differ, the
    function has no slope there that differences could tell, and the element is left out.

    Parameters
    ----------
    function : callable
        Of one or more arrays, to a number.
    input_values : list or dict of numpy.ndarray
        Where the gradients were taken; names where a dictionary is given.
    grad_values : list or dict of numpy.ndarray
        The gradients, of the inputs' shapes.
    function_value : float, optional
        The value of the function there, if it is known.
    delta : float
        How far inputs are moved.
    atol, rtol : float
        What is allowed, for the mean over each input.
    """
    if not isinstance(input_values, dict):
        if len(input_values) != len(grad_values):
            raise ValueError(f"{len(input_values)} inputs have {len(grad_values)} gradients")
        if not isinstance(grad_values, (list, tuple)):
            raise TypeError("gradients of a list of inputs are a list")
        call = lambda values: function(*[values[at] for at in range(len(values))])  # noqa: E731
        input_values, grad_values = dict(enumerate(input_values)), dict(enumerate(grad_values))
    else:
        call = lambda values: function(**values)  # noqa: E731
        if set(input_values) != set(grad_values):
            raise ValueError(f"inputs {sorted(input_values)} have gradients for {sorted(grad_values)}")
    values = {name: np.array(value) for name, value in input_values.items()}
    if function_value is None:
        function_value = float(_array(call(values)))
    for name, value in values.items():
        wanted, got = _differences(call, values, name, delta), _array(grad_values[name])
        if got.shape != value.shape:
            raise AssertionError(f"the gradient of {name!r} has the shape {got.shape}, its input {value.shape}")
        known = np.isfinite(wanted)
        if not known.any():
            continue
        error = np.linalg.norm((wanted - got)[known]) / np.sqrt(known.sum())
        scale = np.linalg.norm(wanted[known]) / np.sqrt(known.sum())
        if not error <= atol + rtol * scale:
            worst = np.unravel_index(np.nanargmax(np.where(known, np.abs(wanted - got), np.nan)), value.shape)
            raise AssertionError(
                f"the gradient of {name!r} differs from differences of the function: at {tuple(map(int, worst))} it is "
                f"{got[worst]}, and the difference {wanted[worst]} (root mean square {error}, allowed {atol + rtol * scale})"
            )


def _differences(call, values, name, delta):
    """Slopes along each element by central differences; NaN where two widths do not agree."""
    value = values[name]
    slopes = np.empty(value.shape)
    for place in itertools.product(*map(range, value.shape)):

        def at(offset, place=place):
            moved = value.copy()
            moved[place] += offset
            return float(_array(call({**values, name: moved})))

        wide = (at(delta) - at(-delta)) / (2 * delta)
        narrow = (at(delta / 2) - at(-delta / 2)) / delta
        smooth = abs(wide - narrow) <= 0.2 * max(abs(wide), abs(narrow), 1e-2)
        slopes[place] = narrow if smooth else np.nan
    return slopes
