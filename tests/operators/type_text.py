"""Types as TVMScript prints them, compared: dimensions by their values, since one size has many formulas."""

import ast
import itertools
import re

ANNOTATION = re.compile(r"^\s+y: (.*?) = R\.", re.M)


def of_y(script):
    """The type that a printed module gives the variable `y`."""
    found = ANNOTATION.search(script)
    return found and found.group(1)


def _dims(text):
    """The elements of a printed tuple of dimensions."""
    tree = ast.parse(f"f({text})", mode="eval").body
    return [ast.unparse(a) for a in tree.args]


class _T:
    """The functions that dimensions are written with."""

    @staticmethod
    def min(a, b):
        return min(a, b)

    @staticmethod
    def max(a, b):
        return max(a, b)

    @staticmethod
    def int64(value):
        return value

    @staticmethod
    def if_then_else(condition, a, b):
        return a if condition else b

    Select = if_then_else


def _value(text, **symbols):
    return eval(text, {"T": _T, "__builtins__": {}}, symbols)  # noqa: S307 - our own and the reference's print


def _split(ty):
    """A type as words in which every list of dimensions is a gap, and these lists."""
    gaps = []
    ty = ty.replace("R.Shape(ndim=-1)", "R.Shape").replace("R.Tensor(ndim=0)", "R.Tensor(())")
    ty = re.sub(r'R.Tensor\(dtype="(\w+)", ndim=0\)', r'R.Tensor((), dtype="\1")', ty)
    out, i = "", 0
    while i < len(ty):
        if ty.startswith("R.Tensor((", i) or ty.startswith("R.Shape([", i):
            start = ty.index("(", i) + 2
            depth, j = 1, start
            while depth:
                depth += (ty[j] in "([") - (ty[j] in ")]")
                j += 1
            gaps.append(ty[start : j - 1])
            out += ty[i:start] + "#"
            i = j - 1
            continue
        out += ty[i]
        i += 1
    return out, gaps


def same(a, b):
    """Whether two printed types are the same.

    A size that would be negative counts as zero: the reference leaves out `max(…, 0)` around sizes of slices and ranges.
    """
    if a == b:
        return True
    if a is None or b is None:
        return False
    (words_a, gaps_a), (words_b, gaps_b) = _split(a), _split(b)
    if words_a != words_b or len(gaps_a) != len(gaps_b):
        return False
    for x, y in zip(gaps_a, gaps_b):
        dims_x, dims_y = _dims(x), _dims(y)
        if len(dims_x) != len(dims_y):
            return False
        for one, other in zip(dims_x, dims_y):
            for n, m in itertools.product((1, 2, 3, 5, 8, 17), (1, 4, 9)):
                if max(_value(one, n=n, m=m), 0) != max(_value(other, n=n, m=m), 0):
                    return False
    return True
