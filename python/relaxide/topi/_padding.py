"""Paddings of windows as convolutions take them."""


def _split(total):
    """Before and after; the odd one stands before."""
    return (total + 1) // 2, total // 2


def get_pad_tuple_generic(padding, kernel):
    """The padding of each side, first before and then after every dimension.

    ``padding`` is a number for all sides, one for each dimension, one for each side, ``"VALID"`` or ``"SAME"``.
    """
    n = len(kernel)
    if isinstance(padding, (tuple, list)):
        if len(padding) == 2 * n:
            return [*padding[:n]], [*padding[n:]]
        if len(padding) != n:
            raise ValueError(f"padding has {len(padding)} numbers; {n} or {2 * n} are expected")
        totals = [2 * side for side in padding]
    elif isinstance(padding, int):
        totals = [2 * padding] * n
    elif padding == "VALID":
        totals = [0] * n
    elif padding == "SAME":
        totals = [length - 1 for length in kernel]
    else:
        raise ValueError(f"Unknown padding option {padding}")
    pairs = [_split(total) for total in totals]
    return [before for before, _ in pairs], [after for _, after in pairs]


def get_pad_tuple(padding, kernel):
    """The padding of a window of two dimensions: above, left, below, right."""
    if isinstance(padding, (tuple, list)) and len(padding) not in (2, 4):
        raise ValueError("Size of padding can only be 2 or 4")
    before, after = get_pad_tuple_generic(padding, kernel)
    return (*before, *after)


def get_pad_tuple1d(padding, kernel):
    """The padding of a window of one dimension: left, right."""
    if isinstance(padding, (tuple, list)) and len(padding) not in (1, 2):
        raise ValueError("Size of padding can only be 1 or 2")
    before, after = get_pad_tuple_generic(padding, [kernel] if isinstance(kernel, int) else list(kernel)[:1])
    return before[0], after[0]


def get_pad_tuple3d(padding, kernel):
    """The padding of a window of three dimensions: front, above, left, back, below, right."""
    if isinstance(padding, (tuple, list)) and len(padding) not in (3, 6):
        raise ValueError("Size of padding can only be 3 or 6")
    before, after = get_pad_tuple_generic(padding, kernel)
    return (*before, *after)


__all__ = ["get_pad_tuple", "get_pad_tuple1d", "get_pad_tuple3d", "get_pad_tuple_generic"]
